#pragma once

#include <string>

namespace msa::node {

// `msa-noded --run-as UID:GID PROGRAM ARGUMENT...`: takes on the user's identity with all its groups and its
// HOME ("/" without an account), for good, and becomes the program. Returns only on failure: the exit code,
// after a text on stderr. Root only.
int RunAs(int argc, char** argv);

}  // namespace msa::node

#pragma once
// A real munged with a key and a socket of its own, ended with the object.

#include <sys/types.h>

#include <string>

#include "msa/support/scratch_directory.h"

namespace msa::test {

class Munged {
 public:
  // In a new directory; the key is `key_byte` over and over. Fails the test if it does not start.
  explicit Munged(char key_byte = 'k');
  ~Munged();
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;

  std::string socket() const { return directory_ / "socket"; }

 private:
  support::ScratchDirectory directory_;
  pid_t pid_ = -1;
};

}  // namespace msa::test

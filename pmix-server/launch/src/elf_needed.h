#pragma once
// The little of ELF (64 bit, this machine's byte order) that tells which MPI a program is linked to.

#include <string>
#include <string_view>
#include <vector>

namespace msa::launch {

// Path of PT_INTERP; empty: static, a script, unreadable or no such file.
std::string ElfInterpreter(const std::string& path);

// Names of DT_NEEDED; empty as above.
std::vector<std::string> ElfNeeded(const std::string& path);

// "libmpi.so.40" of "libmpi.so.40.30.4": cut behind the first number. Empty unless `name` is the C library of
// an MPI (libmpi.so.*, libmpich.so.*).
std::string MpiSoname(std::string_view name);

// The MPI library that the program names itself; empty if it names none. What its other libraries name is
// seen later, in its maps.
std::string LinkedMpi(const std::string& path);

}  // namespace msa::launch

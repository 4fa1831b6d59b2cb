#pragma once
// A real munged with a key and a socket of its own, ended with the object.

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace msa::test {

class Munged {
 public:
  // In a new directory; the key is `key_byte` over and over. Fails the test if it does not start.
  explicit Munged(char key_byte = 'k');
  ~Munged();
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;

  std::string socket() const { return (directory_ / "socket").string(); }

 private:
  std::filesystem::path directory_;
  pid_t pid_ = -1;
};

}  // namespace msa::test

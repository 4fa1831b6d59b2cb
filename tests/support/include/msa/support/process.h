#pragma once
// Programs under test: started, fed, signalled, waited for; what they wrote is kept whole.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "msa/base/unique_fd.h"

namespace msa::support {

using Millis = std::chrono::milliseconds;

struct Command {
  std::vector<std::string> argv;                // argv[0] is looked up in PATH if it has no '/'
  std::string input;                            // stdin of the program, then end of file
  bool keep_input_open = false;                 // stdin stays open after `input` until CloseInput()
  std::map<std::string, std::string> env = {};  // added to this program's environment
  std::vector<std::string> unset = {};          // removed from it
  bool empty_env = false;                       // nothing but `env`
  std::string cwd = {};                         // empty: this program's
  uid_t uid = 0;  // other than 0: the program runs as this user and group (root only)
  std::map<int, unsigned long> limits = {};  // RLIMIT_x: soft and hard limit
  Millis timeout{120'000};                   // Wait() kills it with SIGKILL after this time
};

struct Outcome {
  std::string out;
  std::string err;
  int code = -1;           // exit code; 128 + N if signal N ended it
  bool timed_out = false;  // killed by Wait()
  Millis wall{0};

  // Everything, for failure messages.
  std::string Text() const;
};

// A program and its pipes. The destructor kills it. One thread.
class Process {
 public:
  // The program in a process group of its own. A program that cannot be started ends with code 127.
  explicit Process(Command command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const noexcept { return pid_; }
  const std::string& out() const noexcept { return outcome_.out; }
  const std::string& err() const noexcept { return outcome_.err; }

  // Reads until `fact` holds or the program has closed its streams or `limit` has passed; what `fact` says
  // then.
  bool ReadUntil(const std::function<bool()>& fact, Millis limit = Millis(30'000));
  // The same for `text` in stdout or stderr.
  bool ReadUntilText(const std::string& text, Millis limit = Millis(30'000));
  void Write(const std::string& text);
  void CloseInput();
  // To the program alone; nothing if it has ended.
  void Signal(int signal);
  // Until its end or the command's timeout. Call once.
  Outcome Wait();

 private:
  void Start();
  void Pump(Millis limit);
  bool TryReap();

  Command command_;
  Outcome outcome_;
  std::chrono::steady_clock::time_point begin_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::string unwritten_;
};

// Starts and waits.
Outcome RunCommand(Command command);

}  // namespace msa::support

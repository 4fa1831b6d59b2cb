// How a process that libmsampi has prepared ends at a SIGTERM.
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "msa/base/leave_order.h"

extern "C" {
#include "leave.h"
}

namespace msa {
namespace {

// A child that has done `prepare` and waits for signals; it dies with the test.
class Prepared {
 public:
  explicit Prepared(const std::function<void()>& prepare, const char* job_socket = "/run/job.sock") {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(60);
      ::signal(SIGTERM, SIG_DFL);
      ::unsetenv("MSA_JOB_SOCKET");
      if (job_socket != nullptr) ::setenv("MSA_JOB_SOCKET", job_socket, 1);
      prepare();
      ::close(ready[0]);
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char none = 0;
    EXPECT_EQ(::read(ready[0], &none, 1), 0);
    ::close(ready[0]);
  }
  ~Prepared() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  void Order(int value, int si_code = SI_QUEUE, uid_t user = ::getuid()) const {
    siginfo_t info{};
    info.si_signo = SIGTERM;
    info.si_code = si_code;
    info.si_pid = ::getpid();
    info.si_uid = user;
    info.si_value.sival_int = value;
    EXPECT_EQ(::syscall(SYS_rt_sigqueueinfo, pid_, SIGTERM, &info), 0);
  }
  void Term() const { EXPECT_EQ(::kill(pid_, SIGTERM), 0); }
  // Its end, as a shell counts.
  int Code() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = 0;
};

void OwnHandler(int) { ::_exit(55); }

TEST(Leave, AnOrderEndsTheProcessWithItsCode) {
  for (const int code : {1, 17, 139, 255}) {
    Prepared task(&msa_leave_on_order);
    task.Order(MsaLeaveOrder(code));
    EXPECT_EQ(task.Code(), code);
  }
}

TEST(Leave, AnySigtermOfOthersHasTheDefaultAction) {
  Prepared killed(&msa_leave_on_order);
  killed.Term();
  EXPECT_EQ(killed.Code(), 143);
  for (const int value : {0, 17, MsaLeaveOrder(0), MsaLeaveOrder(17) + 256, -1}) {
    Prepared queued(&msa_leave_on_order);
    queued.Order(value);
    EXPECT_EQ(queued.Code(), 143) << value;
  }
  Prepared told(&msa_leave_on_order);
  told.Order(MsaLeaveOrder(17), SI_MESGQ);
  EXPECT_EQ(told.Code(), 143);
  Prepared strange(&msa_leave_on_order);
  strange.Order(MsaLeaveOrder(17), SI_QUEUE, ::getuid() + 1);
  EXPECT_EQ(strange.Code(), 143);
}

TEST(Leave, AHandlerOfTheProgramsOwnIsKept) {
  Prepared before([] {
    ::signal(SIGTERM, &OwnHandler);
    msa_leave_on_order();
  });
  before.Order(MsaLeaveOrder(17));
  EXPECT_EQ(before.Code(), 55);
  Prepared later([] {
    msa_leave_on_order();
    ::signal(SIGTERM, &OwnHandler);
  });
  later.Order(MsaLeaveOrder(17));
  EXPECT_EQ(later.Code(), 55);
}

void (*handler_before)(int);
// Calls it with the number alone, where what looks like an order may stand in the register behind.
void ChainedHandler(int signal) {
  siginfo_t stale{};
  stale.si_code = SI_QUEUE;
  stale.si_uid = ::getuid();
  stale.si_value.sival_int = MsaLeaveOrder(17);
  void* const before = reinterpret_cast<void*>(handler_before);
  reinterpret_cast<void (*)(int, siginfo_t*, void*)>(before)(signal, &stale, nullptr);
}

TEST(Leave, AHandlerOfTheProgramsOwnMayCallTheOneBeforeIt) {
  Prepared task([] {
    msa_leave_on_order();
    handler_before = ::signal(SIGTERM, &ChainedHandler);
  });
  task.Term();
  EXPECT_EQ(task.Code(), 143);
}

TEST(Leave, ASigtermThatTheProgramIgnoresStaysIgnored) {
  Prepared task([] {
    ::signal(SIGTERM, SIG_IGN);
    msa_leave_on_order();
    struct sigaction now {};
    ::sigaction(SIGTERM, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::_exit(1);
    ::_exit(56);
  });
  EXPECT_EQ(task.Code(), 56);
}

TEST(Leave, OutsideATaskOfMsaNothingIsChanged) {
  Prepared task(
      [] {
        msa_leave_on_order();
        struct sigaction now {};
        ::sigaction(SIGTERM, nullptr, &now);
        if (now.sa_handler != SIG_DFL || (now.sa_flags & SA_SIGINFO) != 0) ::_exit(1);
        ::_exit(57);
      },
      nullptr);
  EXPECT_EQ(task.Code(), 57);
}

TEST(Leave, WhatTheProgramStartsHasTheDefaultAction) {
  Prepared task([] {
    msa_leave_on_order();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execl("/bin/sh", "sh", "-c", "kill -TERM $$; exit 1", nullptr);
      ::_exit(2);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::_exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 58 : 1);
  });
  EXPECT_EQ(task.Code(), 58);
}

}  // namespace
}  // namespace msa

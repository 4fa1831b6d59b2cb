#pragma once
// What the daemons of the test job say to each other over their socket pairs.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "msa/pmix/types.h"

namespace msa::pmix {

enum Kind : std::uint8_t {
  kAnswer,
  kCollective,
  kModex,
  kPublish,
  kLookup,
  kUnpublish,
  kSpawn,
  kAbort,
  kRegister,
  kStart,
  kKill,
  kForget,
  kExited,
  kQuit
};

struct Envelope {
  static constexpr std::uint16_t kType = 0x7001;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint8_t kind = 0;
  std::uint64_t id = 0;
  std::string payload;
  template <class A>
  void Fields(A& a) {
    a(from, to, kind, id, payload);
  }
};

struct Reply {
  static constexpr std::uint16_t kType = 0x7002;
  struct Value {
    Proc proc;
    KeyValue value;
    template <class A>
    void Fields(A& a) {
      a(proc, value);
    }
  };
  PmixStatus status = 0;
  std::string data;
  std::vector<Value> values;
  template <class A>
  void Fields(A& a) {
    a(status, data, values);
  }
};

struct StoreCall {
  static constexpr std::uint16_t kType = 0x7003;
  Proc proc;
  Range range = Range::kSession;
  Persistence persistence = Persistence::kApp;
  std::vector<KeyValue> data;
  std::vector<std::string> keys;
  bool wait = false;
  std::uint32_t timeout_s = 0;
  template <class A>
  void Fields(A& a) {
    a(proc, range, persistence, data, keys, wait, timeout_s);
  }
};

struct AppMessage {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  std::uint32_t size = 0;
  template <class A>
  void Fields(A& a) {
    a(argv, env, cwd, size);
  }
};

struct NamespaceMessage {
  static constexpr std::uint16_t kType = 0x7004;
  std::string nspace;
  std::vector<AppMessage> apps;
  std::vector<std::uint32_t> rank_node;
  Proc parent;
  template <class A>
  void Fields(A& a) {
    a(nspace, apps, rank_node, parent);
  }
};

struct TaskMessage {
  static constexpr std::uint16_t kType = 0x7005;
  Proc proc;
  std::int32_t code = 0;
  bool connected = false;
  bool finalized = false;
  template <class A>
  void Fields(A& a) {
    a(proc, code, connected, finalized);
  }
};

}  // namespace msa::pmix

#include "schema1_records.h"

#include "msa/base/wire.h"

// The structs of schema version 1, field for field. They describe files that exist: nothing here changes.

namespace msa::sqlite {
namespace schema1 {

struct ComponentRequest {
  std::string module;
  std::uint32_t min_nodes = 0;
  std::uint32_t max_nodes = 0;
  std::uint32_t ntasks = 0;
  std::uint32_t ntasks_per_node = 0;
  std::uint32_t cpus_per_task = 0;
  std::uint64_t memory = 0;
  std::uint32_t gpus_per_node = 0;
  std::vector<std::string> nodelist;
  std::vector<std::string> exclude;
  bool exclusive = false;
  bool fewest_nodes = false;
  template <class A>
  void Fields(A& a) {
    a(module, min_nodes, max_nodes, ntasks, ntasks_per_node, cpus_per_task, memory, gpus_per_node, nodelist,
      exclude, exclusive, fewest_nodes);
  }
};

struct Component {
  ComponentRequest resources;
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  template <class A>
  void Fields(A& a) {
    a(resources, argv, env, cwd);
  }
};

struct StdioSpec {
  std::string out;
  std::string err;
  std::string in;
  bool label = false;
  bool append = false;
  template <class A>
  void Fields(A& a) {
    a(out, err, in, label, append);
  }
};

struct JobSpec {
  std::string name;
  std::vector<Component> components;
  std::vector<std::string> env;
  std::string cwd;
  std::uint32_t time_limit_s = 0;
  StdioSpec stdio;
  std::uint8_t kill_policy = 0;
  bool no_bind = false;
  std::uint32_t immediate_s = 0;
  bool oversubscribe = false;
  std::uint8_t on_child_failure = 0;
  bool no_mpi_library = false;
  template <class A>
  void Fields(A& a) {
    a(name, components, env, cwd, time_limit_s, stdio, kill_policy, no_bind, immediate_s, oversubscribe,
      on_child_failure, no_mpi_library);
  }
};

struct Member {
  std::uint32_t index = 0;
  std::string node;
  std::uint32_t module = 0;
  std::string module_name;
  std::string module_kind;
  std::vector<std::uint16_t> cores;
  std::string address;
  std::uint64_t grant = 0;
  bool oversubscribed = false;
  template <class A>
  void Fields(A& a) {
    a(index, node, module, module_name, module_kind, cores, address, grant, oversubscribed);
  }
};

struct Allocation {
  std::string node;
  std::string module;
  std::uint32_t component = 0;
  std::vector<std::uint16_t> cores;
  std::uint32_t tasks = 0;
  std::uint64_t memory = 0;
  std::uint32_t gpus = 0;
  std::uint64_t grant = 0;
  std::uint32_t member = 0;
  bool given_back = false;
  template <class A>
  void Fields(A& a) {
    a(node, module, component, cores, tasks, memory, gpus, grant, member, given_back);
  }
};

struct NamespaceReport {
  std::string nspace;
  std::string parent;
  std::uint32_t size = 0;
  std::vector<std::string> nodes;
  std::string command;
  bool ended = false;
  std::int32_t exit_code = 0;
  std::uint64_t grant = 0;
  template <class A>
  void Fields(A& a) {
    a(nspace, parent, size, nodes, command, ended, exit_code, grant);
  }
};

struct JobRecord {
  std::uint64_t id = 0;
  std::uint32_t incarnation = 0;
  std::string token;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string user_name;
  bool interactive = false;
  JobSpec spec;
  std::string secret;
  std::uint8_t state = 0;
  std::string reason;
  std::uint8_t end_code = 0;
  std::uint8_t ending_as = 0;
  std::int64_t submitted_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t placed_ms = 0;
  std::int64_t ended_ms = 0;
  std::int32_t exit_code = 0;
  std::uint32_t tasks = 0;
  std::uint32_t tasks_failed = 0;
  std::string stdout_path;
  std::string stderr_path;
  std::uint64_t epoch = 0;
  std::vector<Member> members;
  std::uint32_t next_member = 0;
  std::uint32_t head = 0;
  std::vector<Allocation> allocations;
  std::vector<NamespaceReport> namespaces;
  template <class A>
  void Fields(A& a) {
    a(id, incarnation, token, uid, gid, user_name, interactive, spec, secret, state, reason, end_code,
      ending_as, submitted_ms, started_ms, placed_ms, ended_ms, exit_code, tasks, tasks_failed, stdout_path,
      stderr_path, epoch, members, next_member, head, allocations, namespaces);
  }
};

struct GrantRecord {
  std::uint64_t id = 0;
  std::uint64_t job = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t request = 0;
  std::vector<std::uint32_t> members;
  std::uint64_t epoch = 0;
  std::int64_t since_ms = 0;
  bool released = false;
  template <class A>
  void Fields(A& a) {
    a(id, job, incarnation, request, members, epoch, since_ms, released);
  }
};

}  // namespace schema1

namespace {

// A positional record that is decoded by the wrong layout seldom fails to decode: it must come out the same.
template <class Record>
Result<Record> Decode(std::string_view blob, std::string_view what) {
  Record record;
  wire::Decoder decoder(blob);
  record.Fields(decoder);
  if (decoder.ok() && wire::Encode(record) == blob) return record;
  return Error(Code::kDataLoss,
               "a {} record of {} bytes is not of the layout that schema version 1 ended with", what,
               blob.size());
}

Component Now(schema1::Component&& in) {
  schema1::ComponentRequest& ask = in.resources;
  Component out;
  out.resources.module = std::move(ask.module);
  out.resources.min_nodes = ask.min_nodes;
  out.resources.max_nodes = ask.max_nodes;
  out.resources.ntasks = ask.ntasks;
  out.resources.ntasks_per_node = ask.ntasks_per_node;
  out.resources.cpus_per_task = ask.cpus_per_task;
  out.resources.memory = Bytes(ask.memory);
  out.resources.gpus_per_node = ask.gpus_per_node;
  out.resources.nodelist = std::move(ask.nodelist);
  out.resources.exclude = std::move(ask.exclude);
  out.resources.exclusive = ask.exclusive;
  out.resources.fewest_nodes = ask.fewest_nodes;
  out.argv = std::move(in.argv);
  out.env = std::move(in.env);
  out.cwd = std::move(in.cwd);
  return out;
}

JobSpec Now(schema1::JobSpec&& in) {
  JobSpec out;
  out.name = std::move(in.name);
  for (schema1::Component& component : in.components) out.components.push_back(Now(std::move(component)));
  out.env = std::move(in.env);
  out.cwd = std::move(in.cwd);
  out.time_limit_s = in.time_limit_s;
  out.stdio.out = std::move(in.stdio.out);
  out.stdio.err = std::move(in.stdio.err);
  out.stdio.in = std::move(in.stdio.in);
  out.stdio.label = in.stdio.label;
  out.stdio.append = in.stdio.append;
  out.kill_policy = static_cast<wire::KillPolicy>(in.kill_policy);
  out.no_bind = in.no_bind;
  out.immediate_s = in.immediate_s;
  out.oversubscribe = in.oversubscribe;
  out.on_child_failure = static_cast<wire::OnChildFailure>(in.on_child_failure);
  out.no_mpi_library = in.no_mpi_library;
  return out;
}

wire::Member Now(schema1::Member&& in) {
  wire::Member out;
  out.index = in.index;
  out.node = std::move(in.node);
  out.module = ModuleId(in.module);
  out.module_name = std::move(in.module_name);
  out.module_kind = std::move(in.module_kind);
  out.cores = std::move(in.cores);
  out.address = std::move(in.address);
  out.grant = GrantId(in.grant);
  out.oversubscribed = in.oversubscribed;
  return out;
}

Allocation Now(schema1::Allocation&& in) {
  Allocation out;
  out.node = std::move(in.node);
  out.module = std::move(in.module);
  out.component = in.component;
  out.cores = std::move(in.cores);
  out.tasks = in.tasks;
  out.memory = Bytes(in.memory);
  out.gpus = in.gpus;
  out.grant = GrantId(in.grant);
  out.member = in.member;
  out.given_back = in.given_back;
  return out;
}

wire::NamespaceReport Now(schema1::NamespaceReport&& in) {
  wire::NamespaceReport out;
  out.nspace = std::move(in.nspace);
  out.parent = std::move(in.parent);
  out.size = in.size;
  out.nodes = std::move(in.nodes);
  out.command = std::move(in.command);
  out.ended = in.ended;
  out.exit_code = in.exit_code;
  out.grant = GrantId(in.grant);
  return out;
}

}  // namespace

Result<JobRecord> JobFromSchema1(std::string_view blob) {
  MSA_ASSIGN_OR_RETURN(schema1::JobRecord in, Decode<schema1::JobRecord>(blob, "job"));
  JobRecord out;
  out.id = JobId(in.id);
  out.incarnation = Incarnation(in.incarnation);
  out.token = std::move(in.token);
  out.user = {in.uid, in.gid};
  out.user_name = std::move(in.user_name);
  out.interactive = in.interactive;
  out.spec = Now(std::move(in.spec));
  out.secret = std::move(in.secret);
  out.state = static_cast<JobState>(in.state);
  out.reason = std::move(in.reason);
  out.end_code = static_cast<Code>(in.end_code);
  out.ending_as = static_cast<JobState>(in.ending_as);
  out.submitted_at = Instant(Millis(in.submitted_ms));
  out.started_at = Instant(Millis(in.started_ms));
  out.placed_at = Instant(Millis(in.placed_ms));
  out.ended_at = Instant(Millis(in.ended_ms));
  out.exit_code = in.exit_code;
  out.tasks = in.tasks;
  out.tasks_failed = in.tasks_failed;
  out.stdout_path = std::move(in.stdout_path);
  out.stderr_path = std::move(in.stderr_path);
  out.epoch = Epoch(in.epoch);
  for (schema1::Member& member : in.members) out.members.push_back(Now(std::move(member)));
  out.next_member = in.next_member;
  out.head = in.head;
  for (schema1::Allocation& share : in.allocations) out.allocations.push_back(Now(std::move(share)));
  for (schema1::NamespaceReport& report : in.namespaces) out.namespaces.push_back(Now(std::move(report)));
  return out;
}

Result<GrantRecord> GrantFromSchema1(std::string_view blob) {
  MSA_ASSIGN_OR_RETURN(schema1::GrantRecord in, Decode<schema1::GrantRecord>(blob, "grant"));
  GrantRecord out;
  out.id = GrantId(in.id);
  out.job = JobId(in.job);
  out.incarnation = Incarnation(in.incarnation);
  out.request = in.request;
  out.members = std::move(in.members);
  out.epoch = Epoch(in.epoch);
  out.since = Instant(Millis(in.since_ms));
  out.released = in.released;
  return out;
}

}  // namespace msa::sqlite

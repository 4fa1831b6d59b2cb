#include "commands/slurm_queries.h"

#include <stdlib.h>

#include "backend/records.h"
#include "backend/slurm_nodes.h"
#include "client/client_file.h"
#include "commands/slurm.h"
#include "run/token.h"

namespace msa::cli {
namespace {

// A controller that does not answer at once is left out.
constexpr Millis kPatience{3'000};

using Records = std::vector<std::vector<std::string>>;

Result<SlurmSays<Records>> Ask(const BackendChoice& choice, std::vector<std::string> words,
                               std::span<const std::string_view> fields) {
  MSA_ASSIGN_OR_RETURN(const std::string token, MakeToken());
  const RecordFormat format(token);
  words.emplace_back("-O");
  words.push_back(format.Ask(fields));
  const std::string name = words[0];
  SlurmCall call;
  call.words = std::move(words);
  MSA_ASSIGN_OR_RETURN(const SlurmAnswer answer, RunSlurm(choice, call));
  SlurmSays<Records> out;
  out.exit_code = answer.exit_code;
  if (out.exit_code != 0) return out;
  Result<Records> records = format.Read(answer.out, fields.size());
  if (!records.ok()) return records.status().WithContext(name);
  out.value = *std::move(records);
  return out;
}

}  // namespace

Result<BackendChoice> ChoiceFor(const std::string& option, const std::string& dir) {
  const char* environment = ::getenv("MSA_BACKEND");
  BackendWords words{.option = option, .environment = environment == nullptr ? "" : environment, .file = ""};
  MSA_ASSIGN_OR_RETURN(const BackendChoice said, ChooseBackend(words));
  if (!said.because.empty()) return said;
  const Result<Endpoint> endpoint = FindEndpoint(dir);
  // The command itself meets that error.
  if (!endpoint.ok() || !endpoint->dir.empty()) return said;
  MSA_ASSIGN_OR_RETURN(const ClientFile file, LoadClientFile());
  const bool elsewhere = endpoint->socket.starts_with("tls:") && endpoint->socket != file.server;
  if (!elsewhere) words.file = file.backend;
  return ChooseBackend(words);
}

Result<SlurmSays<std::vector<SlurmRow>>> AskForJobs(const BackendChoice& choice, const JobsWanted& wanted) {
  std::vector<std::string> words = {"squeue", "--noheader", "--all"};
  if (wanted.ended) words.emplace_back("--states=all");
  if (!wanted.user.empty()) words.push_back("--user=" + wanted.user);
  MSA_ASSIGN_OR_RETURN(const SlurmSays<Records> says, Ask(choice, std::move(words), SlurmJobFields()));
  SlurmSays<std::vector<SlurmRow>> out;
  out.exit_code = says.exit_code;
  MSA_ASSIGN_OR_RETURN(out.value, ReadSlurmRows(says.value));
  return out;
}

Result<SlurmSays<Records>> AskForNodes(const BackendChoice& choice) {
  return Ask(choice, {"sinfo", "--noheader", "--all", "--Node"}, SlurmNodeFields());
}

Result<std::unique_ptr<SystemClient>> ControllerBeside(const std::string& dir) {
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(dir));
  if (dir.empty() && !endpoint.dir.empty())
    return Status(Code::kFailedPrecondition,
                  "no controller of msa is known here; name one with --server or in "
                  "/etc/msa/client.conf");
  return SystemClient::TryConnect(endpoint, kPatience);
}

}  // namespace msa::cli

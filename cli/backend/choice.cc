#include "backend/choice.h"

namespace msa::cli {

Result<BackendChoice> ChooseBackend(const BackendWords& words) {
  struct Said {
    const std::string& word;
    std::string because;
  };
  const Said said[] = {{words.option, "--backend " + words.option},
                       {words.environment, "MSA_BACKEND=" + words.environment},
                       {words.file, "client.conf: backend = " + words.file}};
  for (const Said& one : said) {
    if (one.word.empty() || one.word == "auto") continue;
    if (one.word != "msa" && one.word != "slurm")
      return Error(Code::kInvalidArgument, "{}: '{}' is unknown; expected msa, slurm or auto", one.because,
                   one.word);
    return BackendChoice{one.word == "slurm" ? Backend::kSlurm : Backend::kMsa, one.because};
  }
  return BackendChoice{};
}

}  // namespace msa::cli

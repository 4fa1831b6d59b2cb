#include "commands/invocation.h"

#include "commands/print.h"
#include "commands/slurm.h"

namespace msa::cli {

Invocation::Invocation(Text text)
    : parser_(std::move(text.command), std::move(text.usage), std::move(text.summary)) {
  parser_.Text(0, "dir", "DIR", "directory of the local system (default: MSA_DIR, else the user's own)",
               &dir_);
  parser_.Text(0, "server", "tls:HOST:PORT", "controller on another host, instead of --dir", &dir_);
  parser_.Text(0, "backend", "msa|slurm|auto", kBackendHelp, &backend_);
}

Invocation& Invocation::WithFormat(Shows shows) {
  AddFormatOptions(parser_, shows, &format_);
  return *this;
}

Result<bool> Invocation::Parse(const Args& args, const Expect& expect) {
  MSA_ASSIGN_OR_RETURN(operands_, parser_.Parse(args));
  if (parser_.help_asked()) {
    MSA_RETURN_IF_ERROR(Print(parser_.Help()));
    return false;
  }
  if (operands_.size() < expect.min)
    return Error(Code::kInvalidArgument, "{} needs {}; see '{} --help'", parser_.command(), expect.what,
                 parser_.command());
  if (operands_.size() > expect.max)
    return Error(Code::kInvalidArgument, "{}: '{}' is too much; see '{} --help'", parser_.command(),
                 operands_[expect.max], parser_.command());
  return true;
}

Result<std::unique_ptr<SystemClient>> Invocation::Connect() const {
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(dir_));
  return SystemClient::Connect(endpoint);
}

Result<BackendChoice> Invocation::Choice() const { return ChoiceFor(backend_, dir_); }

Status Invocation::Show(const Listing& listing) const { return Print(Render(listing, format_)); }

Status Invocation::Show(const Details& details) const {
  MSA_ASSIGN_OR_RETURN(const std::string text, Render(details, format_));
  return Print(text);
}

}  // namespace msa::cli

#pragma once

#include <string>

#include "msa/v1/job.grpc.pb.h"

namespace msa::test {

// One task of `true` on the cluster.
inline v1::SubmitRequest Request(const std::string& token) {
  v1::SubmitRequest request;
  request.set_submit_token(token);
  auto& spec = *request.mutable_spec();
  spec.set_cwd("/");
  spec.add_env("PATH=/bin");
  auto& component = *spec.add_components();
  component.set_module("cluster");
  component.set_ntasks(1);
  component.add_argv("true");
  return request;
}

}  // namespace msa::test

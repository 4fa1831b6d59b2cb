#include "keep_grpc.h"

#include <grpc/grpc.h>

namespace msa {

void KeepGrpc() {
  [[maybe_unused]] static const bool kept = [] {
    ::grpc_init();
    return true;
  }();
}

}  // namespace msa

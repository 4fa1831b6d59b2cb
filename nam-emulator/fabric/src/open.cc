// The one symbol of libmsanam-fabric.so.

#include "client.h"

extern "C" __attribute__((visibility("default"))) msa::nam::FabricClient* msa_nam_fabric_open(
    std::uint32_t version, const char* provider, msa::Status* error) noexcept {
  using namespace msa;
  if (version != nam::kFabricAbi) {
    *error = Error(Code::kUnimplemented,
                   "libmsanam-fabric has interface {}, libmsanam expected {}; they are of different "
                   "installations of msa",
                   nam::kFabricAbi, version);
    return nullptr;
  }
  Result<std::unique_ptr<nam::FabricClient>> client =
      nam::OpenFabricClient(provider == nullptr ? "" : provider);
  if (!client.ok()) {
    *error = client.status();
    return nullptr;
  }
  *error = Status::Ok();
  return (*client).release();
}

// What a client may send to namd, by socket and by fabric: it may be refused, never break an invariant or
// touch memory outside its segments. The input is a sequence of (kind, length, payload); half of the kinds
// send a well-formed message with numbers from the payload, so that more than decoding is reached.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "service_fixture.h"

namespace msa::namd::test {
namespace {

class Fuzzed {
 public:
  void Step(std::uint8_t kind, std::string_view input) {
    input_ = input;
    const Service::Peer peer = (kind & 0x10) != 0 ? FromSocket(1 + (kind >> 5 & 1)) : FromFabric();
    switch (kind & 15) {
      case 0:
        return Attach(peer);
      case 1: {
        wire::NamAtomic atomic{.attachment = Attachment(), .slot = Number<std::uint8_t>()};
        atomic.offset = Number<std::uint64_t>();
        if (Number<std::uint8_t>() < 200) atomic.offset %= 9000;
        atomic.op = Number<std::uint8_t>();
        atomic.type = Number<std::uint8_t>();
        atomic.fetch = Number<std::uint8_t>() % 2 == 0;
        atomic.count = Number<std::uint16_t>();
        atomic.compare = std::string(Number<std::uint8_t>() % 32, 'c');
        atomic.operand = std::string(input_);
        return (void)world_.Ask(peer, atomic);
      }
      case 2:
        return (void)world_.Ask(peer,
                                wire::NamLock{Attachment(), Number<std::uint8_t>(), Number<std::uint8_t>()});
      case 3:
        return (void)world_.Ask(peer, wire::NamDetach{Attachment()});
      case 4:
        return world_.service->ConnectionClosed(1 + Number<std::uint8_t>() % 2);
      case 5:
        return world_.service->Revoke({.clients = {NamClientId(Number<std::uint8_t>() % 4)}});
      default:
        break;
    }
    const std::uint16_t type = static_cast<std::uint16_t>(0x0800 | Number<std::uint8_t>());
    (void)world_.service->Serve(peer, {type, 0, 1, std::string(input_)});
  }
  Status Check() const { return world_.service->CheckInvariants(); }

 private:
  template <class T>
  T Number() {
    T value = 0;
    const std::size_t size = std::min(sizeof value, input_.size());
    std::memcpy(&value, input_.data(), size);
    input_.remove_prefix(size);
    return value;
  }
  std::uint64_t Attachment() {
    const std::uint8_t choice = Number<std::uint8_t>();
    return attachments_.empty() ? choice : attachments_[choice % attachments_.size()];
  }
  void Attach(const Service::Peer& peer) {
    const auto attached = world_.Attach(peer, 1 + Number<std::uint8_t>() % 4, Number<std::uint8_t>() % 4,
                                        static_cast<NamRights>(Number<std::uint8_t>() % 8));
    if (attached.ok()) attachments_.push_back(attached->attachment);
  }

  ServiceWorld world_;
  std::string_view input_;
  std::vector<std::uint64_t> attachments_;
};

}  // namespace
}  // namespace msa::namd::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  msa::namd::test::Fuzzed fuzzed;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 2) {
    const auto kind = static_cast<std::uint8_t>(rest[0]);
    const std::size_t length = std::min<std::size_t>(static_cast<std::uint8_t>(rest[1]), rest.size() - 2);
    fuzzed.Step(kind, rest.substr(2, length));
    rest.remove_prefix(2 + length);
    if (const auto status = fuzzed.Check(); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      std::abort();
    }
  }
  return 0;
}

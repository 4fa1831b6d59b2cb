// Any bytes as requests for network attached memory, given to a book that holds a region: refused or carried
// out, each answered once at most, and what must always hold of the book holds. The input is a list of
// frames: two bytes of type, two of length, the payload.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>

#include "msa/nam/nam_book.h"

namespace {

using namespace msa;

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

class World {
 public:
  World() {
    wire::NamdHello hello;
    hello.capacity = Bytes(1u << 20);
    Handle(nam_event::NamdUp{"nam0", hello});
    Handle(nam_event::JobStarted{JobId(7), {1000, 1000}, "ada", Bytes(65536), true, {}});
    wire::NamCreate create{"t",
                           "grid",
                           wire::NamLifetime::kPersistent,
                           0600,
                           wire::NamPlacement::kPack,
                           {{Bytes(100), 1}, {Bytes(200), 8}}};
    Ask(std::move(create));
  }

  void Ask(NamRequest request) {
    NamCaller caller;
    caller.user = {1000, 1000};
    caller.user_name = "ada";
    caller.holder.job = JobId(7);
    caller.holder.client = NamClientId(1);
    Handle(nam_event::Request{std::move(caller), std::move(request), RegionUuid{1, ++tag_}, tag_});
  }

 private:
  // As a namd that has room for everything.
  void Handle(NamEvent event) {
    std::vector<NamEvent> next;
    for (const NamEffect& effect : book_.On(std::move(event), now_)) {
      if (const auto* reply = std::get_if<nam_effect::Reply>(&effect))
        if (reply->tag == 0 || !answered_.insert(reply->tag).second) std::abort();
      const auto* send = std::get_if<nam_effect::SendToNamd>(&effect);
      if (send == nullptr) continue;
      if (const auto* allocate = std::get_if<wire::NamExtentAllocate>(&send->message))
        next.emplace_back(nam_event::ExtentDone{send->node, {allocate->request, 0, ""}});
      if (const auto* free = std::get_if<wire::NamExtentFree>(&send->message))
        next.emplace_back(nam_event::ExtentDone{send->node, {free->request, 0, ""}});
    }
    Check(book_.CheckInvariants());
    for (NamEvent& one : next) Handle(std::move(one));
  }

  NamBook book_{{{"nam0", Bytes(1u << 20)}}, {Bytes(1u << 19), Bytes(), Bytes()}, 1};
  Instant now_ = Instant(Millis(1'000'000));
  std::uint64_t tag_ = 0;
  std::set<std::uint64_t> answered_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World world;
  std::string_view in(reinterpret_cast<const char*>(data), size);
  while (in.size() >= 4) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(in[i])); };
    const auto type = static_cast<std::uint16_t>(byte(0) | byte(1) << 8);
    const std::size_t length = std::min<std::size_t>(byte(2) | byte(3) << 8, in.size() - 4);
    auto request = DecodeNamRequest(type, in.substr(4, length));
    in.remove_prefix(4 + length);
    if (request.ok()) world.Ask(*std::move(request));
  }
  return 0;
}

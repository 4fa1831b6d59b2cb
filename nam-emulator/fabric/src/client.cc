#include "client.h"

#include <utility>
#include <vector>

#include "engine.h"

namespace msa::nam {
namespace {

// A transfer that nobody gives a deadline any more is given up after this.
constexpr auto kLastWait = std::chrono::seconds(30);
// What a socket takes at once: the rest needs somebody who makes progress.
constexpr std::uint64_t kTakenAtOnce = std::uint64_t{32} << 10;

Status ForkedError() {
  return Error(Code::kFailedPrecondition,
               "the fabric was opened before this process was forked off; open the region anew here");
}

class Transfer final : public FabricTransfer {
 public:
  Transfer(std::shared_ptr<Engine> engine, std::shared_ptr<Link> link)
      : engine_(std::move(engine)), link_(std::move(link)) {}

  ~Transfer() override {
    if (engine_->forked()) {
      new std::shared_ptr<Engine>(std::move(engine_));  // never closed here: the parent's
      return;
    }
    const GateLock lock(engine_->gate());
    if (!work_.finished && !late_) engine_->Drive(work_.finished, SteadyNow() + kLastWait);
    if (!work_.finished) engine_->Abandon(*link_, work_);
  }

  void Start(FabricPeer::Key key, std::span<const FabricPiece> pieces, bool write) {
    work_.key = key;
    work_.write = write;
    work_.asynchronous = true;
    work_.pieces = pieces;
    const GateLock lock(engine_->gate());
    engine_->Start(link_, work_);
    if (work_.finished) return;
    const bool whole = work_.piece == pieces.size();
    if (!whole) {
      pieces_.assign(pieces.begin(), pieces.end());
      work_.pieces = pieces_;
    }
    std::uint64_t bytes = 0;
    for (const FabricPiece& piece : pieces) bytes += piece.bytes;
    if (!whole || bytes > kTakenAtOnce) engine_->HandOver();
  }

  std::optional<Status> Test() override {
    if (engine_->forked()) return ForkedError();
    const GateLock lock(engine_->gate());
    if (!work_.finished) engine_->Nudge();
    if (!work_.finished) return std::nullopt;
    return work_.status;
  }

  Status Wait(SteadyTime deadline) override {
    if (engine_->forked()) return ForkedError();
    const GateLock lock(engine_->gate());
    engine_->Drive(work_.finished, deadline);
    if (work_.finished) return work_.status;
    late_ = true;
    return Error(Code::kDeadlineExceeded, "a transfer of the fabric is not done yet");
  }

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Link> link_;
  std::vector<FabricPiece> pieces_;  // what `work_` points to, if it could not be posted whole
  Work work_;
  bool late_ = false;
};

class Peer final : public FabricPeer {
 public:
  Peer(std::shared_ptr<Engine> engine, std::shared_ptr<Link> link)
      : engine_(std::move(engine)), link_(std::move(link)) {}

  ~Peer() override {
    if (engine_->forked()) {
      new std::shared_ptr<Engine>(std::move(engine_));
      return;
    }
    const GateLock lock(engine_->gate());
    engine_->Leave(*link_);
  }

  Result<wire::Frame> Call(std::uint16_t type, const std::string& payload, SteadyTime deadline) override {
    if (engine_->forked()) return ForkedError();
    PendingCall call;
    call.link = link_.get();
    const GateLock lock(engine_->gate());
    engine_->Start(call, type, payload);
    if (!call.finished) engine_->Drive(call.finished, deadline);
    if (!call.finished) engine_->Abandon(call);
    if (!call.status.ok()) return std::move(call.status);
    return std::move(call.reply);
  }

  Result<std::unique_ptr<FabricTransfer>> Write(Key key, std::span<const FabricPiece> pieces) override {
    return Begin(key, pieces, true);
  }
  Result<std::unique_ptr<FabricTransfer>> Read(Key key, std::span<const FabricPiece> pieces) override {
    return Begin(key, pieces, false);
  }
  Status WriteNow(Key key, const FabricPiece& piece, SteadyTime deadline) override {
    return Now(key, piece, deadline, true);
  }
  Status ReadNow(Key key, const FabricPiece& piece, SteadyTime deadline) override {
    return Now(key, piece, deadline, false);
  }
  bool broken() const override { return link_->broken.load(std::memory_order_relaxed); }

 private:
  Result<std::unique_ptr<FabricTransfer>> Begin(Key key, std::span<const FabricPiece> pieces, bool write) {
    if (engine_->forked()) return ForkedError();
    auto transfer = std::make_unique<Transfer>(engine_, link_);
    transfer->Start(key, pieces, write);
    return std::unique_ptr<FabricTransfer>(std::move(transfer));
  }

  Status Now(Key key, const FabricPiece& piece, SteadyTime deadline, bool write) {
    if (engine_->forked()) return ForkedError();
    Work work;
    work.key = key;
    work.write = write;
    work.pieces = {&piece, 1};
    const GateLock lock(engine_->gate());
    engine_->Start(link_, work);
    if (!work.finished) engine_->Drive(work.finished, deadline);
    if (work.finished) return std::move(work.status);
    engine_->Abandon(*link_, work);
    return Error(Code::kDeadlineExceeded, "{} of {} bytes over the fabric not done in time",
                 write ? "put" : "get", piece.bytes);
  }

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Link> link_;
};

class Client final : public FabricClient {
 public:
  explicit Client(std::string provider) : provider_(std::move(provider)) {}
  ~Client() override {
    if (engine_ && engine_->forked()) new std::shared_ptr<Engine>(std::move(engine_));
  }

  const std::string& address() const override {
    const MutexLock lock(mu_);
    static const std::string kNone;
    return Open("").ok() ? engine_->port().address() : kNone;
  }

  Result<std::unique_ptr<FabricPeer>> Connect(const std::string& address) override {
    std::shared_ptr<Engine> engine;
    {
      const MutexLock lock(mu_);
      if (engine_ && engine_->forked()) return ForkedError();
      MSA_RETURN_IF_ERROR(Open(LocalHostTowards(address)));
      engine = engine_;
    }
    const GateLock lock(engine->gate());
    MSA_ASSIGN_OR_RETURN(std::shared_ptr<Link> link, engine->Connect(address));
    return std::unique_ptr<FabricPeer>(std::make_unique<Peer>(engine, std::move(link)));
  }

 private:
  Status Open(const std::string& host) const MSA_REQUIRES(mu_) {
    if (engine_) return Status::Ok();
    MSA_ASSIGN_OR_RETURN(engine_, Engine::Open({provider_, host, 0}));
    return Status::Ok();
  }

  const std::string provider_;
  mutable Mutex mu_;
  mutable std::shared_ptr<Engine> engine_ MSA_GUARDED_BY(mu_);
};

}  // namespace

Result<std::unique_ptr<FabricClient>> OpenFabricClient(const std::string& provider) {
  MSA_ASSIGN_OR_RETURN(std::string name, Port::Find(provider));
  return std::unique_ptr<FabricClient>(std::make_unique<Client>(std::move(name)));
}

}  // namespace msa::nam

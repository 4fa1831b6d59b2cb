#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <grpcpp/support/server_callback.h>

#include "msa/base/mutex.h"

namespace msa {

// Of messages that can carry others of their kind (`more`), those that wait in a queue become one: each
// message costs both ends some 100 us. Sizes are bytes; what would make more than this of it stays in the
// queue.
inline constexpr std::size_t kMostGathered = std::size_t{256} << 10;
template <class Out>
void Gather(std::deque<std::pair<Out, std::size_t>>& queue) {
  if constexpr (requires(Out & out) { out.add_more(); }) {
    auto first = std::move(queue.front());
    queue.pop_front();
    while (!queue.empty() && first.second + queue.front().second <= kMostGathered) {
      first.second += queue.front().second;
      *first.first.add_more() = std::move(queue.front().first);
      queue.pop_front();
    }
    queue.push_front(std::move(first));
  }
}

// What Gather made one of, in order.
template <class In>
std::vector<In> Scatter(In message) {
  std::vector<In> all(1);
  for (In& next : *message.mutable_more()) all.push_back(std::move(next));
  message.clear_more();
  all.front() = std::move(message);
  return all;
}

// The sending half of a server stream over gRPC's callback API: a queue with one write in flight. `Base` is
// grpc::ServerWriteReactor<Out> or grpc::ServerBidiReactor<In, Out>. Create with std::make_shared and then
// Open(): the stream then keeps itself until gRPC is done with it; holders may keep it longer, calls to a
// stream that is over do nothing. Send, End and queued: any thread. The hooks are called on gRPC's threads,
// without a lock.
template <class Base, class Out>
class SendingStream : public Base {
 public:
  struct Hooks {
    std::function<void()> on_drained;  // queued() fell below low_water after it had reached high_water
    std::function<void()> on_gone;     // once, when gRPC is done with the stream, however it ended
    std::size_t high_water = std::size_t{1} << 20;
    std::size_t low_water = std::size_t{256} << 10;
  };

  // To be returned to gRPC by the service's method.
  Base* Open(std::shared_ptr<SendingStream> self, Hooks hooks) {
    hooks_ = std::move(hooks);
    MutexLock lock(mu_);
    self_ = std::move(self);
    return this;
  }

  void Send(Out message) MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    Put(std::move(message));
    Write();
  }

  // As Send, but it may wait for Flush or the next Send, and travel with what is queued until then.
  void Queue(Out message) MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    Put(std::move(message));
  }
  void Flush() MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    Write();
  }

  // After what is queued. The first End counts.
  void End(grpc::Status status) MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (finish_ || finished_) return;
    finish_ = std::move(status);
    if (queue_.empty()) FinishNow();
    Write();
  }

  std::size_t queued() const MSA_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return queued_;
  }

  void OnWriteDone(bool ok) override {
    bool drained = false;
    {
      MutexLock lock(mu_);
      writing_ = false;
      queued_ -= queue_.front().second;
      queue_.pop_front();
      drained = full_ && queued_ < hooks_.low_water;
      if (drained) full_ = false;
      if (!ok) {
        queue_.clear();
        queued_ = 0;
        if (!finish_) finish_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client has gone");
      }
      Write();
      if (queue_.empty() && finish_) FinishNow();
    }
    if (drained && hooks_.on_drained) hooks_.on_drained();
  }

  void OnCancel() override {
    MutexLock lock(mu_);
    if (finished_) return;
    if (!finish_) finish_ = grpc::Status(grpc::StatusCode::CANCELLED, "the client has gone");
    if (writing_) return;  // it fails, and its end finishes the stream
    queue_.clear();
    queued_ = 0;
    FinishNow();
  }

  void OnDone() override {
    std::shared_ptr<SendingStream> self;
    {
      MutexLock lock(mu_);
      finished_ = true;
      self = std::move(self_);
    }
    if (hooks_.on_gone) hooks_.on_gone();
    hooks_ = {};  // what the hooks hold goes before the last holder of the stream
  }

 protected:
  bool over() const MSA_REQUIRES(mu_) { return finish_.has_value() || finished_; }

  mutable Mutex mu_;

 private:
  void Put(Out message) MSA_REQUIRES(mu_) {
    if (finish_ || finished_) return;
    const std::size_t size = message.ByteSizeLong();
    queued_ += size;
    if (queued_ >= hooks_.high_water) full_ = true;
    queue_.emplace_back(std::move(message), size);
  }

  void Write() MSA_REQUIRES(mu_) {
    if (writing_ || finished_ || queue_.empty()) return;
    writing_ = true;
    Gather(queue_);
    this->StartWrite(&queue_.front().first);
  }

  void FinishNow() MSA_REQUIRES(mu_) {
    if (finished_) return;
    finished_ = true;
    this->Finish(*finish_);
  }

  Hooks hooks_;
  std::shared_ptr<SendingStream> self_ MSA_GUARDED_BY(mu_);
  std::deque<std::pair<Out, std::size_t>> queue_ MSA_GUARDED_BY(mu_);  // the first one is being written
  std::size_t queued_ MSA_GUARDED_BY(mu_) = 0;
  bool writing_ MSA_GUARDED_BY(mu_) = false;
  bool full_ MSA_GUARDED_BY(mu_) = false;
  bool finished_ MSA_GUARDED_BY(mu_) = false;  // Finish was called
  std::optional<grpc::Status> finish_ MSA_GUARDED_BY(mu_);
};

// A stream both ways. Each message of the client is asked for by ReadNext: what the reader has not taken
// stays in the client.
template <class In, class Out>
class BidiStream : public SendingStream<grpc::ServerBidiReactor<In, Out>, Out> {
 public:
  using Base = SendingStream<grpc::ServerBidiReactor<In, Out>, Out>;

  // Asks for the first message. `on_read` is called on gRPC's threads, once for each message asked for;
  // nullopt: the client sends no more or is gone.
  grpc::ServerBidiReactor<In, Out>* OpenBoth(std::shared_ptr<BidiStream> self, typename Base::Hooks hooks,
                                             std::function<void(std::optional<In>)> on_read) {
    on_read_ = std::move(on_read);
    auto* reactor = Base::Open(std::move(self), std::move(hooks));
    this->StartRead(&in_);
    return reactor;
  }

  // Once after each message that was read. Any thread.
  void ReadNext() MSA_EXCLUDES(this->mu_) {
    MutexLock lock(this->mu_);
    if (!this->over()) this->StartRead(&in_);
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      on_read_(std::move(in_));
    } else {
      on_read_(std::nullopt);
    }
  }

  void OnDone() override {
    on_read_ = nullptr;
    Base::OnDone();
  }

 private:
  In in_;
  std::function<void(std::optional<In>)> on_read_;
};

}  // namespace msa

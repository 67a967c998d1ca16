// Single-flight: identical requests in flight share one piece of work and see its events from the
// first.
//
// A Flight is an append-only log of events with one publisher and any number of readers, each at
// its own place. Publisher and readers live on different threads. The log is guarded by a mutex
// that is held for a push or a pointer copy only; passing every event to every reader as a message
// instead would copy the log once per reader (a thousand waiters of one stream), and order late
// joiners against live events by hand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fixpoint {

// Called with no lock held, from whichever thread made the change. Must not block; it usually posts
// to the sleeper's own thread, where a wake-up that comes too early or twice must do no harm.
using Wake = std::function<void()>;

template <class Event>
class Flight : public std::enable_shared_from_this<Flight<Event>> {
 public:
  using EventPtr = std::shared_ptr<const Event>;

  // shared: readers may join at any time, so events are kept to the end. Otherwise there is one
  // reader, joined before the first event, and an event goes when it was read.
  explicit Flight(bool shared = true) : shared_(shared) {}

  // One reader's place in the log. Leaves the flight when destroyed. Used by one thread at a time.
  class Reader {
   public:
    Reader(std::shared_ptr<Flight> flight, Wake wake)
        : flight_(std::move(flight)), wake_(std::move(wake)) {}
    ~Reader() { flight_->leave(this); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // The next event, or null: none yet (wake will be called), or no more (closed()).
    EventPtr next() { return flight_->next(*this); }
    bool closed() const { return flight_->exhausted(*this); }

   private:
    friend class Flight;
    std::shared_ptr<Flight> flight_;
    Wake wake_;
    std::size_t at_ = 0;
  };

  // Null once the flight was abandoned: its work is being cancelled and must not be joined.
  std::unique_ptr<Reader> join(Wake wake) {
    auto reader = std::make_unique<Reader>(this->shared_from_this(), std::move(wake));
    const std::lock_guard lock(mutex_);
    if (abandoned_) {
      reader->at_ = kNotJoined;
      return nullptr;  // the destructor sees kNotJoined and leaves the counts alone
    }
    readers_.push_back(reader.get());
    return reader;
  }

  // --- for the publisher -------------------------------------------------------------------------

  // Called once when the last reader leaves before close(): nobody waits for the work any more.
  // Set before the first join(), by the thread that made the flight.
  void on_abandoned(Wake wake) { abandoned_wake_ = std::move(wake); }
  // Called when a reader catches up after ahead() was true.
  void on_progress(Wake wake) { progress_wake_ = std::move(wake); }

  void publish(Event event) {
    auto shared = std::make_shared<const Event>(std::move(event));
    std::vector<Wake> wakes;
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(shared));
      wakes = sleepers();
    }
    for (const auto& wake : wakes) wake();
  }

  // No more events follow.
  void close() {
    std::vector<Wake> wakes;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      wakes = sleepers();
    }
    for (const auto& wake : wakes) wake();
  }

  // True when even the fastest reader is more than `limit` events behind: the publisher should wait
  // for progress. The fastest, so that one slow reader cannot hold up the others.
  bool ahead(std::size_t limit) {
    const std::lock_guard lock(mutex_);
    publisher_waits_ = !readers_.empty() && events_.size() - fastest() > limit;
    return publisher_waits_;
  }

  std::size_t readers() const {
    const std::lock_guard lock(mutex_);
    return readers_.size();
  }

 private:
  static constexpr std::size_t kNotJoined = static_cast<std::size_t>(-1);

  EventPtr next(Reader& reader) {
    EventPtr event;
    bool progress = false;
    {
      const std::lock_guard lock(mutex_);
      if (reader.at_ >= events_.size()) return nullptr;
      event = shared_ ? events_[reader.at_] : std::move(events_[reader.at_]);
      ++reader.at_;
      progress = std::exchange(publisher_waits_, false);
    }
    if (progress && progress_wake_) progress_wake_();
    return event;
  }

  bool exhausted(const Reader& reader) const {
    const std::lock_guard lock(mutex_);
    return closed_ && reader.at_ >= events_.size();
  }

  void leave(Reader* reader) {
    Wake wake;
    {
      const std::lock_guard lock(mutex_);
      if (reader->at_ == kNotJoined) return;
      std::erase(readers_, reader);
      if (readers_.empty() && !closed_ && !abandoned_) {
        abandoned_ = true;
        wake = abandoned_wake_;
      } else if (std::exchange(publisher_waits_, false)) {
        wake = progress_wake_;
      }
    }
    if (wake) wake();
  }

  std::size_t fastest() const {
    std::size_t at = 0;
    for (const auto* reader : readers_) at = std::max(at, reader->at_);
    return at;
  }

  std::vector<Wake> sleepers() const {
    std::vector<Wake> wakes;
    wakes.reserve(readers_.size());
    for (const auto* reader : readers_) {
      if (reader->at_ + 1 >= events_.size()) wakes.push_back(reader->wake_);
    }
    return wakes;
  }

  const bool shared_;
  mutable std::mutex mutex_;
  std::vector<EventPtr> events_;
  std::vector<Reader*> readers_;
  bool closed_ = false, abandoned_ = false, publisher_waits_ = false;
  Wake abandoned_wake_, progress_wake_;
};

// Flights by key. Thread-safe; its lock is held for one map operation.
template <class Event>
class SingleFlight {
 public:
  using Ptr = std::shared_ptr<Flight<Event>>;
  struct Joined {
    Ptr flight;
    std::unique_ptr<typename Flight<Event>::Reader> reader;
    bool leader = false;  // this caller must do the work, or hand the flight to something that does
  };

  Joined join(const std::string& key, const Wake& wake) {
    const std::lock_guard lock(mutex_);
    auto& slot = flights_[key];
    if (slot) {
      auto reader = slot->join(wake);
      if (reader) return {slot, std::move(reader), false};
    }
    slot = std::make_shared<Flight<Event>>();
    return {slot, slot->join(wake), true};
  }

  // Later requests start a flight of their own. The leader calls it after the answer was handed to
  // the store, so that a request finds the flight or the entry, never neither.
  void remove(const std::string& key, const Ptr& flight) {
    const std::lock_guard lock(mutex_);
    const auto found = flights_.find(key);
    if (found != flights_.end() && found->second == flight) flights_.erase(found);
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return flights_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Ptr> flights_;
};

}  // namespace fixpoint

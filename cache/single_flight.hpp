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
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fixpoint {

// Whoever waits for news: a reader that has read everything, or a publisher that is too far ahead.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Called with no lock held, from whichever thread made the change. Must not block; it usually
  // posts to the sleeper's own thread, where a wake-up that comes too early must do no harm.
  virtual void wake() = 0;
};
using SleeperPtr = std::shared_ptr<Sleeper>;

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
    Reader(std::shared_ptr<Flight> flight, SleeperPtr sleeper)
        : flight_(std::move(flight)), sleeper_(std::move(sleeper)) {}
    ~Reader() { flight_->leave(this); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // The next event, or null: none yet (the sleeper is woken, once, when there is one), or no more
    // (closed()).
    EventPtr next() { return flight_->next(*this); }
    // After next() gave null.
    bool closed() const { return at_end_; }

   private:
    friend class Flight;
    std::shared_ptr<Flight> flight_;
    SleeperPtr sleeper_;
    std::size_t at_ = 0;
    bool waits_ = false;   // for a wake-up; guarded by the flight's mutex
    bool at_end_ = false;  // the reader's own
  };

  // Null once the flight was abandoned: its work is being cancelled and must not be joined.
  std::unique_ptr<Reader> join(SleeperPtr sleeper) {
    auto reader = std::make_unique<Reader>(this->shared_from_this(), std::move(sleeper));
    const std::lock_guard lock(mutex_);
    if (abandoned_) {
      reader->at_ = kNotJoined;
      return nullptr;  // the destructor sees kNotJoined and leaves the counts alone
    }
    readers_.push_back(reader.get());
    return reader;
  }

  // --- for the publisher -------------------------------------------------------------------------

  // Called once when the last reader leaves before the last event: nobody waits for the work any
  // more. With no lock held. Set before the first join(), by the thread that made the flight.
  void on_abandoned(std::function<void()> call) { abandoned_call_ = std::move(call); }
  // Woken when a reader catches up after ahead() was true.
  void on_progress(SleeperPtr publisher) { publisher_ = std::move(publisher); }

  void publish(Event event) { push(std::move(event), true, false); }
  // For an event that means nothing without the next one: wakes nobody.
  void publish_quietly(Event event) { push(std::move(event), false, false); }
  // No more events follow.
  void publish_last(Event event) { push(std::move(event), true, true); }

  // True when even the fastest reader is more than `limit` events behind: the publisher should wait
  // for progress. The fastest, so that one slow reader cannot hold up the others.
  bool ahead(std::size_t limit) {
    const std::lock_guard lock(mutex_);
    publisher_waits_ = !readers_.empty() && events_.size() - fastest() > limit;
    return publisher_waits_;
  }

  // Whether join() would give null.
  bool abandoned() const {
    const std::lock_guard lock(mutex_);
    return abandoned_;
  }

 private:
  static constexpr std::size_t kNotJoined = static_cast<std::size_t>(-1);

  // Mostly there is one reader, or none that sleeps.
  using Sleepers = boost::container::small_vector<SleeperPtr, 4>;

  void push(Event event, bool wake, bool last) {
    auto shared = std::make_shared<const Event>(std::move(event));
    Sleepers sleepers;
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(shared));
      closed_ = closed_ || last;
      for (auto* reader : readers_) {
        if (wake && std::exchange(reader->waits_, false)) sleepers.push_back(reader->sleeper_);
      }
    }
    for (const auto& sleeper : sleepers) sleeper->wake();
  }

  EventPtr next(Reader& reader) {
    EventPtr event;
    bool progress = false;
    {
      const std::lock_guard lock(mutex_);
      if (reader.at_ >= events_.size()) {
        reader.at_end_ = closed_;
        reader.waits_ = !closed_;
        return nullptr;
      }
      event = shared_ ? events_[reader.at_] : std::move(events_[reader.at_]);
      ++reader.at_;
      progress = std::exchange(publisher_waits_, false);
    }
    if (progress && publisher_) publisher_->wake();
    return event;
  }

  void leave(Reader* reader) {
    bool abandoned = false, progress = false;
    {
      const std::lock_guard lock(mutex_);
      if (reader->at_ == kNotJoined) return;
      std::erase(readers_, reader);
      abandoned = readers_.empty() && !closed_ && !abandoned_;
      if (abandoned) {
        abandoned_ = true;
      } else {
        progress = std::exchange(publisher_waits_, false);
      }
    }
    if (abandoned && abandoned_call_) abandoned_call_();
    if (progress && publisher_) publisher_->wake();
  }

  std::size_t fastest() const {
    std::size_t at = 0;
    for (const auto* reader : readers_) at = std::max(at, reader->at_);
    return at;
  }

  const bool shared_;
  mutable std::mutex mutex_;
  std::vector<EventPtr> events_;
  std::vector<Reader*> readers_;
  bool closed_ = false, abandoned_ = false, publisher_waits_ = false;
  std::function<void()> abandoned_call_;
  SleeperPtr publisher_;
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

  Joined join(const std::string& key, const SleeperPtr& sleeper) {
    const std::lock_guard lock(mutex_);
    auto& slot = flights_[key];
    if (slot) {
      auto reader = slot->join(sleeper);
      if (reader) return {slot, std::move(reader), false};
    }
    slot = std::make_shared<Flight<Event>>();
    return {slot, slot->join(sleeper), true};
  }

  // Whether join() would find a flight, were it called now.
  bool has(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = flights_.find(key);
    return found != flights_.end() && !found->second->abandoned();
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

// Coarse timeouts: one hashed wheel per io_context instead of one system timer per operation (which
// costs a fifth of the throughput of a small request).
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

namespace fixpoint {

class DeadlineWheel;

// One timeout that can be moved at any time for a few nanoseconds. It fires at most 100 ms late and
// never early. Not thread-safe: used on its context's thread, destroyed before the context.
class Deadline {
 public:
  // The callback runs on the context; it may re-arm this deadline and destroy others.
  Deadline(boost::asio::io_context& context, std::function<void()> on_expire);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void expire_after(std::chrono::milliseconds time);  // replaces an earlier deadline
  void cancel();

 private:
  friend class DeadlineWheel;
  // A circular list; an entry that is not armed points at itself.
  struct Link {
    Link* next = this;
    Link* previous = this;
    bool is_linked() const { return next != this; }
    void unlink();
    void link_before(Link& other);
  };
  struct Entry : Link {
    Deadline* owner = nullptr;
    long long tick = 0;       // when it is due
    long long slot_tick = 0;  // the slot it stands in; never after tick
  };

  DeadlineWheel& wheel_;
  Entry entry_;
  std::function<void()> on_expire_;
};

}  // namespace fixpoint

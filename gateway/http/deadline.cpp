#include "gateway/http/deadline.hpp"

#include <array>
#include <utility>

#include "gateway/http/asio.hpp"

namespace fixpoint {
namespace {

constexpr std::chrono::milliseconds kTick{100};
// 102 s per turn: nearly every timeout of the gateway fires within its first turn.
constexpr long long kSlots = 1024;

long long tick_of(Clock::time_point time) {
  return time.time_since_epoch() / kTick;
}

}  // namespace

// A service, so that each context has exactly one wheel and nobody has to hand it around. The timer
// runs only while a deadline is armed: an io_context whose work is done can return from run().
class DeadlineWheel : public net::execution_context::service {
 public:
  using key_type = DeadlineWheel;
  static inline net::execution_context::id id;

  explicit DeadlineWheel(net::io_context& context)
      : service(context), timer_(context.get_executor()) {}

  void arm(Deadline::Entry& entry, std::chrono::milliseconds time) {
    const Clock::time_point now = Clock::now();
    entry.tick = tick_of(now + time) + 1;
    // A deadline that moves away, as nearly all do, stays where it is: its slot sends it on.
    if (entry.is_linked() && entry.slot_tick <= entry.tick) return;
    disarm(entry);
    if (armed_ == 0) last_tick_ = tick_of(now);
    link(entry);
    ++armed_;
    if (!waiting_) wait();
  }

  void disarm(Deadline::Entry& entry) {
    if (!entry.is_linked()) return;
    entry.unlink();
    --armed_;
  }

 private:
  void shutdown() override { timer_.cancel(); }

  void wait() {
    waiting_ = true;
    timer_.expires_at(Clock::time_point((tick_of(Clock::now()) + 1) * kTick));
    timer_.async_wait([this](error_code ec) {
      waiting_ = false;
      if (ec) return;
      turn();
      if (armed_ > 0) wait();
    });
  }

  void turn() {
    const long long now = tick_of(Clock::now());
    const long long first = std::max(last_tick_ + 1, now - kSlots + 1);
    last_tick_ = now;
    for (long long tick = first; tick <= now; ++tick) fire(slot(tick), now);
  }

  void link(Deadline::Entry& entry) {
    entry.slot_tick = entry.tick;
    entry.link_before(slot(entry.tick));
  }

  Deadline::Link& slot(long long tick) { return slots_[static_cast<std::size_t>(tick % kSlots)]; }

  // The slot's entries move to a local list first: a callback may arm into the same slot, and may
  // unlink or destroy any entry of the local list.
  void fire(Deadline::Link& slot, long long now) {
    if (!slot.is_linked()) return;
    Deadline::Link due;
    due.next = slot.next;
    due.previous = slot.previous;
    due.next->previous = &due;
    due.previous->next = &due;
    slot.next = slot.previous = &slot;
    while (due.next != &due) {
      auto& entry = static_cast<Deadline::Entry&>(*due.next);
      entry.unlink();
      if (entry.tick > now) {
        link(entry);  // it moved, or is due in a later turn
        continue;
      }
      --armed_;
      entry.owner->on_expire_();
    }
  }

  Timer timer_;
  std::array<Deadline::Link, kSlots> slots_;
  long long last_tick_ = 0;
  std::size_t armed_ = 0;
  bool waiting_ = false;
};

void Deadline::Link::unlink() {
  next->previous = previous;
  previous->next = next;
  next = previous = this;
}

void Deadline::Link::link_before(Link& other) {
  next = &other;
  previous = other.previous;
  previous->next = this;
  other.previous = this;
}

Deadline::Deadline(net::io_context& context, std::function<void()> on_expire)
    : wheel_(net::use_service<DeadlineWheel>(context)), on_expire_(std::move(on_expire)) {
  entry_.owner = this;
}

Deadline::~Deadline() {
  cancel();
}

void Deadline::expire_after(std::chrono::milliseconds time) {
  wheel_.arm(entry_, time);
}

void Deadline::cancel() {
  wheel_.disarm(entry_);
}

}  // namespace fixpoint

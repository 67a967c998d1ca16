#include "cache/single_flight.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

namespace fixpoint {
namespace {

using IntFlight = Flight<int>;

// Rung by publishers, also after the reader has left.
struct Bell : Sleeper {
  void wake() override {
    const std::lock_guard lock(mutex);
    rung = true;
    condition.notify_one();
  }
  std::mutex mutex;
  std::condition_variable condition;
  bool rung = false;
};

struct Counter : Sleeper {
  void wake() override { ++wakes; }
  int wakes = 0;
};

// A reader on a thread of its own, asleep until it is woken.
std::vector<int> read_all(const std::shared_ptr<IntFlight>& flight) {
  const auto bell = std::make_shared<Bell>();
  auto reader = flight->join(bell);
  std::vector<int> seen;
  while (true) {
    if (const auto event = reader->next()) {
      seen.push_back(*event);
      continue;
    }
    if (reader->closed()) break;
    std::unique_lock lock(bell->mutex);
    bell->condition.wait(lock, [&] { return std::exchange(bell->rung, false); });
  }
  return seen;
}

TEST(Flight, EveryReaderSeesEveryEventFromTheFirst) {
  const auto flight = std::make_shared<IntFlight>();
  constexpr int kEvents = 2000, kReaders = 8;
  std::vector<std::vector<int>> seen(kReaders);
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders / 2; ++i) {
    threads.emplace_back([&, i] { seen[static_cast<std::size_t>(i)] = read_all(flight); });
  }
  std::thread publisher([&] {
    for (int i = 0; i < kEvents - 1; ++i) flight->publish(i);
    flight->publish_last(kEvents - 1);
  });
  for (int i = kReaders / 2; i < kReaders; ++i) {  // these come while it runs, or after
    threads.emplace_back([&, i] { seen[static_cast<std::size_t>(i)] = read_all(flight); });
  }
  publisher.join();
  for (auto& thread : threads) thread.join();
  for (const auto& events : seen) {
    ASSERT_EQ(events.size(), kEvents);
    for (int i = 0; i < kEvents; ++i) ASSERT_EQ(events[static_cast<std::size_t>(i)], i);
  }
}

TEST(Flight, AReaderIsWokenOnceForAllThatItHasNotLookedAt) {
  const auto flight = std::make_shared<IntFlight>();
  const auto sleeper = std::make_shared<Counter>();
  const auto reader = flight->join(sleeper);
  flight->publish(0);
  EXPECT_EQ(sleeper->wakes, 0);  // it has not looked yet, and so does not sleep
  EXPECT_EQ(*reader->next(), 0);
  EXPECT_EQ(reader->next(), nullptr);
  flight->publish_quietly(1);
  EXPECT_EQ(sleeper->wakes, 0);
  flight->publish(2);
  flight->publish(3);
  EXPECT_EQ(sleeper->wakes, 1);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(*reader->next(), i);
  EXPECT_EQ(reader->next(), nullptr);
  EXPECT_FALSE(reader->closed());
  flight->publish_last(4);
  EXPECT_EQ(sleeper->wakes, 2);
  EXPECT_EQ(*reader->next(), 4);
  EXPECT_EQ(reader->next(), nullptr);
  EXPECT_TRUE(reader->closed());
}

TEST(Flight, IsAbandonedWhenTheLastReaderLeaves) {
  const auto flight = std::make_shared<IntFlight>();
  int abandoned = 0;
  auto first = flight->join(std::make_shared<Counter>());
  flight->on_abandoned([&] { ++abandoned; });
  auto second = flight->join(std::make_shared<Counter>());
  first.reset();
  EXPECT_EQ(abandoned, 0);
  second.reset();
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(flight->join(std::make_shared<Counter>()),
            nullptr);  // too late: the work is being cancelled
  EXPECT_EQ(abandoned, 1);
}

TEST(Flight, IsNotAbandonedAfterItsEnd) {
  const auto flight = std::make_shared<IntFlight>();
  int abandoned = 0;
  auto reader = flight->join(std::make_shared<Counter>());
  flight->on_abandoned([&] { ++abandoned; });
  flight->publish_last(1);
  reader.reset();
  EXPECT_EQ(abandoned, 0);
  const auto late = flight->join(std::make_shared<Counter>());
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(*late->next(), 1);
  EXPECT_EQ(late->next(), nullptr);
  EXPECT_TRUE(late->closed());
}

TEST(Flight, OnlyTheFastestReaderHoldsThePublisher) {
  const auto flight = std::make_shared<IntFlight>();
  const auto publisher = std::make_shared<Counter>();
  auto fast = flight->join(std::make_shared<Counter>());
  const auto slow = flight->join(std::make_shared<Counter>());
  flight->on_progress(publisher);
  for (int i = 0; i < 5; ++i) flight->publish(i);
  EXPECT_FALSE(flight->ahead(5));
  EXPECT_TRUE(flight->ahead(4));
  fast->next();
  EXPECT_EQ(publisher->wakes, 1);
  EXPECT_FALSE(flight->ahead(4));  // though `slow` has read nothing
  fast->next();
  EXPECT_EQ(publisher->wakes, 1);  // nobody was waiting
  EXPECT_TRUE(flight->ahead(2));
  fast.reset();
  EXPECT_EQ(publisher->wakes, 2);  // whoever leaves must not leave the publisher asleep
}

TEST(SingleFlight, OneLeaderAmongConcurrentJoins) {
  SingleFlight<int> flights;
  std::atomic<int> leaders{0};
  std::vector<std::thread> threads;
  std::vector<SingleFlight<int>::Joined> joined(16);
  for (auto& slot : joined) {
    threads.emplace_back([&] {
      slot = flights.join("key", std::make_shared<Counter>());
      if (slot.leader) ++leaders;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(leaders, 1);
  for (const auto& slot : joined) EXPECT_EQ(slot.flight, joined[0].flight);
}

TEST(SingleFlight, KeysDoNotMeetAndRemovalStartsAnew) {
  SingleFlight<int> flights;
  const auto a = flights.join("a", std::make_shared<Counter>());
  const auto b = flights.join("b", std::make_shared<Counter>());
  EXPECT_TRUE(a.leader);
  EXPECT_TRUE(b.leader);
  flights.remove("a", b.flight);  // not its flight: nothing happens
  EXPECT_FALSE(flights.join("a", std::make_shared<Counter>()).leader);
  flights.remove("a", a.flight);
  EXPECT_TRUE(flights.join("a", std::make_shared<Counter>()).leader);
}

TEST(SingleFlight, AnAbandonedFlightIsReplaced) {
  SingleFlight<int> flights;
  auto first = flights.join("key", std::make_shared<Counter>());
  EXPECT_TRUE(flights.has("key"));
  first.reader.reset();
  EXPECT_FALSE(flights.has("key")) << "nobody can join it";
  const auto second = flights.join("key", std::make_shared<Counter>());
  EXPECT_TRUE(second.leader);
  EXPECT_NE(second.flight, first.flight);
  flights.remove("key",
                 first.flight);  // the abandoned leader's clean-up must not hit its successor
  EXPECT_FALSE(flights.join("key", std::make_shared<Counter>()).leader);
}

}  // namespace
}  // namespace fixpoint

#include "cache/single_flight.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

namespace fixpoint {
namespace {

using IntFlight = Flight<int>;

// Rung by publishers, also after the reader has left.
struct Bell {
  std::mutex mutex;
  std::condition_variable condition;
  bool rung = false;
};

// A reader on a thread of its own, asleep until it is woken.
std::vector<int> read_all(const std::shared_ptr<IntFlight>& flight) {
  const auto bell = std::make_shared<Bell>();
  auto reader = flight->join([bell] {
    const std::lock_guard lock(bell->mutex);
    bell->rung = true;
    bell->condition.notify_one();
  });
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
    for (int i = 0; i < kEvents; ++i) flight->publish(i);
    flight->close();
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

TEST(Flight, IsAbandonedWhenTheLastReaderLeaves) {
  const auto flight = std::make_shared<IntFlight>();
  int abandoned = 0;
  auto first = flight->join([] {});
  flight->on_abandoned([&] { ++abandoned; });
  auto second = flight->join([] {});
  first.reset();
  EXPECT_EQ(abandoned, 0);
  second.reset();
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(flight->join([] {}), nullptr);  // too late: the work is being cancelled
  EXPECT_EQ(abandoned, 1);
}

TEST(Flight, IsNotAbandonedAfterItsEnd) {
  const auto flight = std::make_shared<IntFlight>();
  int abandoned = 0;
  auto reader = flight->join([] {});
  flight->on_abandoned([&] { ++abandoned; });
  flight->publish(1);
  flight->close();
  reader.reset();
  EXPECT_EQ(abandoned, 0);
  const auto late = flight->join([] {});
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(*late->next(), 1);
  EXPECT_TRUE(late->closed());
}

TEST(Flight, OnlyTheFastestReaderHoldsThePublisher) {
  const auto flight = std::make_shared<IntFlight>();
  int progress = 0;
  auto fast = flight->join([] {});
  const auto slow = flight->join([] {});
  flight->on_progress([&] { ++progress; });
  for (int i = 0; i < 5; ++i) flight->publish(i);
  EXPECT_FALSE(flight->ahead(5));
  EXPECT_TRUE(flight->ahead(4));
  fast->next();
  EXPECT_EQ(progress, 1);
  EXPECT_FALSE(flight->ahead(4));  // though `slow` has read nothing
  fast->next();
  EXPECT_EQ(progress, 1);  // nobody was waiting
  EXPECT_TRUE(flight->ahead(2));
  fast.reset();
  EXPECT_EQ(progress, 2);  // whoever leaves must not leave the publisher asleep
}

TEST(SingleFlight, OneLeaderAmongConcurrentJoins) {
  SingleFlight<int> flights;
  std::atomic<int> leaders{0};
  std::vector<std::thread> threads;
  std::vector<SingleFlight<int>::Joined> joined(16);
  for (auto& slot : joined) {
    threads.emplace_back([&] {
      slot = flights.join("key", [] {});
      if (slot.leader) ++leaders;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(leaders, 1);
  for (const auto& slot : joined) EXPECT_EQ(slot.flight, joined[0].flight);
}

TEST(SingleFlight, KeysDoNotMeetAndRemovalStartsAnew) {
  SingleFlight<int> flights;
  const auto a = flights.join("a", [] {});
  const auto b = flights.join("b", [] {});
  EXPECT_TRUE(a.leader);
  EXPECT_TRUE(b.leader);
  flights.remove("a", b.flight);  // not its flight: nothing happens
  EXPECT_FALSE(flights.join("a", [] {}).leader);
  flights.remove("a", a.flight);
  EXPECT_TRUE(flights.join("a", [] {}).leader);
}

TEST(SingleFlight, AnAbandonedFlightIsReplaced) {
  SingleFlight<int> flights;
  auto first = flights.join("key", [] {});
  first.reader.reset();
  const auto second = flights.join("key", [] {});
  EXPECT_TRUE(second.leader);
  EXPECT_NE(second.flight, first.flight);
  flights.remove("key",
                 first.flight);  // the abandoned leader's clean-up must not hit its successor
  EXPECT_FALSE(flights.join("key", [] {}).leader);
}

}  // namespace
}  // namespace fixpoint

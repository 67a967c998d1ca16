#include "gateway/http/sse.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

namespace fixpoint {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events parse(const std::vector<std::string>& pieces) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (const std::string& piece : pieces) EXPECT_TRUE(parser.feed(piece, events));
  Events result;
  for (const SseEvent& event : events) result.emplace_back(event.event, event.data);
  return result;
}

// Every way to cut the text in two, and one byte at a time.
void expect_any_split(const std::string& text, const Events& expected) {
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(parse({text.substr(0, cut), text.substr(cut)}), expected) << "cut at " << cut;
  }
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  EXPECT_EQ(parse(bytes), expected);
}

TEST(Sse, LineEndings) {
  const Events expected = {{"", "a"}, {"", "b\nc"}};
  expect_any_split("data: a\n\ndata: b\ndata: c\n\n", expected);
  expect_any_split("data: a\r\n\r\ndata: b\r\ndata: c\r\n\r\n", expected);
  expect_any_split("data: a\r\rdata: b\rdata: c\r\r", expected);
  expect_any_split("data: a\r\n\ndata: b\rdata: c\n\r\n", expected);
}

TEST(Sse, FieldsOfTheSpecification) {
  expect_any_split("event: add\ndata: 1\n\n", {{"add", "1"}});
  expect_any_split("data\n\n", {{"", ""}});
  expect_any_split("data:\n\n", {{"", ""}});
  expect_any_split("data\ndata\n\n", {{"", "\n"}});
  expect_any_split("data:x\n\ndata: x\n\ndata:  x\n\n", {{"", "x"}, {"", "x"}, {"", " x"}});
  expect_any_split("data: a:b: c\n\n", {{"", "a:b: c"}});
  expect_any_split("unknown: 1\nid: 7\nretry: 10\ndata: 1\n\n", {{"", "1"}});
  expect_any_split(": a comment\n\n:\ndata: 1\n\n", {{"", "1"}});
  expect_any_split("Data: 1\n\n", {});
  expect_any_split(" data: 1\n\n", {});
}

TEST(Sse, AnEventWithoutDataIsDroppedWithItsName) {
  expect_any_split("event: x\n\ndata: 1\n\n", {{"", "1"}});
}

TEST(Sse, AnUnfinishedEventIsDropped) {
  expect_any_split("data: 1\n\ndata: 2\n", {{"", "1"}});
  SseParser parser;
  std::vector<SseEvent> events;
  ASSERT_TRUE(parser.feed("data: 1\n\n", events));
  EXPECT_FALSE(parser.mid_event());
  ASSERT_TRUE(parser.feed("da", events));
  EXPECT_TRUE(parser.mid_event());
  ASSERT_TRUE(parser.feed("ta: 2\n", events));
  EXPECT_TRUE(parser.mid_event());
  ASSERT_TRUE(parser.feed("\n", events));
  EXPECT_FALSE(parser.mid_event());
  ASSERT_TRUE(parser.feed(": heartbeat\n", events));
  EXPECT_FALSE(parser.mid_event());
}

TEST(Sse, WhatTheEndLeftUnfinished) {
  for (const char* end : {"", "\n", "\r", "\r\n"}) {
    SseParser parser;
    std::vector<SseEvent> events;
    ASSERT_TRUE(parser.feed("data: 1\n\n", events));
    EXPECT_EQ(parser.unfinished_data(), "");
    ASSERT_TRUE(parser.feed("data: [DONE]" + std::string(end), events));
    EXPECT_EQ(parser.unfinished_data(), "[DONE]");
    EXPECT_EQ(events.size(), 1u);
  }
}

TEST(Sse, ByteOrderMarkOnlyAtTheStart) {
  expect_any_split(
      "\xEF\xBB\xBF"
      "data: 1\n\n",
      {{"", "1"}});
  expect_any_split(
      "data: 1\n\n\xEF\xBB\xBF"
      "data: 2\n\n",
      {{"", "1"}});
  expect_any_split(
      "\xEF\xBB\xBF\xEF\xBB\xBF"
      "data: 2\n\n",
      {});
}

TEST(Sse, BytesOfCharactersStayWhole) {
  expect_any_split("data: \xF0\x9F\x98\x80\xE6\xBC\xA2\n\n",
                   {{"", "\xF0\x9F\x98\x80\xE6\xBC\xA2"}});
}

TEST(Sse, AnEventBeyondTheLimitIsAnError) {
  SseParser parser(100);
  std::vector<SseEvent> events;
  EXPECT_TRUE(parser.feed("data: " + std::string(90, 'x') + "\n\n", events));
  EXPECT_EQ(events.size(), 1u);
  const Result<void> one_line = parser.feed("data: " + std::string(95, 'x'), events);
  ASSERT_FALSE(one_line);
  EXPECT_EQ(one_line.error().code, ErrorCode::protocol);
  SseParser lines(100);
  Result<void> result;
  for (int i = 0; i < 100 && result; ++i) result = lines.feed("data: 1234567890\n", events);
  EXPECT_FALSE(result);
  SseParser comments(100);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(comments.feed(": 1234567890\n", events));
}

TEST(Sse, AppendedEventsComeBack) {
  EXPECT_TRUE(rc::check("any data survives any split and line ending", [] {
    // CR cannot stand in data: it is a line end.
    const auto text =
        rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab :\n\xC3\xA9")));
    const auto name = rc::gen::container<std::string>(rc::gen::elementOf(std::string("xyz")));
    const auto pairs = *rc::gen::container<std::vector<std::pair<std::string, std::string>>>(
        rc::gen::pair(name, text));
    std::string wire;
    for (const auto& [event, data] : pairs) append_sse(wire, data, event);
    // Each LF becomes one of the three line ends; an LF right after a CR would make one end of two.
    std::string mixed;
    for (const char c : wire) {
      if (c != '\n') {
        mixed += c;
      } else if (mixed.ends_with('\r')) {
        mixed += *rc::gen::elementOf(std::vector<std::string>{"\r\n", "\r"});
      } else {
        mixed += *rc::gen::elementOf(std::vector<std::string>{"\n", "\r\n", "\r"});
      }
    }
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < mixed.size();) {
      const std::size_t size = *rc::gen::inRange<std::size_t>(1, 9);
      pieces.push_back(mixed.substr(at, size));
      at += size;
    }
    RC_ASSERT(parse(pieces) == pairs);
  }));
}

TEST(Sse, AppendSplitsDataIntoLines) {
  std::string out;
  append_sse(out, "a\nb\r\nc\rd", "tick");
  EXPECT_EQ(out, "event: tick\ndata: a\ndata: b\ndata: c\ndata: d\n\n");
  out.clear();
  append_sse(out, "");
  EXPECT_EQ(out, "data: \n\n");
}

TEST(Sse, AnyBytesAreTakenWithoutHarm) {
  EXPECT_TRUE(rc::check([](const std::string& noise) {
    SseParser parser(64);
    std::vector<SseEvent> events;
    (void)parser.feed(noise, events);
    for (const SseEvent& event : events) RC_ASSERT(event.data.size() <= 64u);
  }));
}

}  // namespace
}  // namespace fixpoint

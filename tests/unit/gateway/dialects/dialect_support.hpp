// Streams and answers of the tests of this folder.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "gateway/dialects/answer_form.hpp"

namespace fixpoint::test {

// Members' order does not matter.
inline void expect_same(const Json& actual, const Json& expected) {
  EXPECT_EQ(nlohmann::json(actual), nlohmann::json(expected)) << actual.dump(1);
}

inline Json assemble(Endpoint endpoint, const std::vector<SseEvent>& events, bool complete = true) {
  const auto assembler = make_assembler(endpoint);
  bool ended = false;
  for (const auto& event : events) {
    const auto step = assembler->add(event);
    EXPECT_TRUE(step) << (step ? "" : step.error().message);
    if (!step) break;
    EXPECT_FALSE(ended) << "an event after the end";
    ended = *step == StreamStep::end;
    EXPECT_NE(*step, StreamStep::error) << event.data;
  }
  EXPECT_EQ(ended, complete);
  return assembler->assemble();
}

// As an API whose events carry their names in their data sends them.
inline std::vector<SseEvent> named(const std::vector<std::string>& datas) {
  std::vector<SseEvent> events;
  for (const auto& data : datas) {
    events.push_back({Json::parse(data).value("type", ""), data});
  }
  return events;
}

inline std::vector<SseEvent> chunks(const std::vector<std::string>& datas) {
  std::vector<SseEvent> events;
  for (const auto& data : datas) events.push_back({{}, data});
  return events;
}

// The message of the error that some event of the stream causes; empty: none does.
inline std::string problem_in(Endpoint endpoint, const std::vector<SseEvent>& events) {
  const auto assembler = make_assembler(endpoint);
  for (const auto& event : events) {
    const auto step = assembler->add(event);
    if (!step) return step.error().message;
  }
  return {};
}

// Whether the plain answer of the stream may be given for it.
inline bool is_faithful(Endpoint endpoint, const std::vector<SseEvent>& events) {
  const auto assembler = make_assembler(endpoint);
  for (const auto& event : events) EXPECT_TRUE(assembler->add(event)) << event.data;
  return assembler->faithful();
}

// Splitting an answer and putting it together again changes nothing.
inline void expect_round_trip(Endpoint endpoint, const Json& answer) {
  expect_same(assemble(endpoint, split_answer(endpoint, answer, true)), answer);
}

// Any text: ASCII with quotes, backslashes and controls, two to four bytes of UTF-8.
inline rc::Gen<std::string> any_text() {
  const auto character = rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(1, 0x80),
                                        rc::gen::inRange<std::uint32_t>(0xA0, 0x800),
                                        rc::gen::inRange<std::uint32_t>(0x4E00, 0x9000),
                                        rc::gen::inRange<std::uint32_t>(0x1F300, 0x1F700));
  return rc::gen::map(rc::gen::container<std::vector<std::uint32_t>>(character),
                      [](const std::vector<std::uint32_t>& code_points) {
                        std::string text;
                        const auto more = [&](std::uint32_t bits) {
                          text += static_cast<char>(0x80 | (bits & 63));
                        };
                        for (const auto c : code_points) {
                          if (c < 0x80) {
                            text += static_cast<char>(c);
                          } else if (c < 0x800) {
                            text += static_cast<char>(0xC0 | c >> 6);
                            more(c);
                          } else if (c < 0x10000) {
                            text += static_cast<char>(0xE0 | c >> 12);
                            more(c >> 6);
                            more(c);
                          } else {
                            text += static_cast<char>(0xF0 | c >> 18);
                            more(c >> 12);
                            more(c >> 6);
                            more(c);
                          }
                        }
                        return text;
                      });
}

}  // namespace fixpoint::test

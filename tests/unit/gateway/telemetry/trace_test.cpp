#include "gateway/telemetry/trace.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <thread>
#include <vector>

namespace fixpoint {
namespace {

constexpr std::string_view kTrace = "0af7651916cd43dd8448eb211c80319c";
constexpr std::string_view kSpan = "b7ad6b7169203331";
const std::string kParent = "00-" + std::string(kTrace) + "-" + std::string(kSpan) + "-01";

TEST(TraceParent, IsRead) {
  const auto parent = parse_traceparent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace.text(), kTrace);
  EXPECT_EQ(parent->span.text(), kSpan);
  EXPECT_TRUE(parent->sampled);
  const std::string start = kParent.substr(0, 53);
  EXPECT_FALSE(parse_traceparent(start + "00")->sampled);
  EXPECT_FALSE(parse_traceparent(start + "02")->sampled);
  EXPECT_TRUE(parse_traceparent(start + "ff")->sampled);
  // A later version may say more.
  EXPECT_TRUE(parse_traceparent("cc" + kParent.substr(2)));
  EXPECT_TRUE(parse_traceparent("cc" + kParent.substr(2) + "-what-the-future-brings"));
}

TEST(TraceParent, MalformedOnesAreNone) {
  const std::string rest = kParent.substr(2);
  std::vector<std::string> bad = {"",
                                  "00",
                                  kParent.substr(0, 54),
                                  kParent + "-",
                                  kParent + "-00",
                                  kParent + " ",
                                  " " + kParent,
                                  "ff" + rest,
                                  "0g" + rest,
                                  "0A" + rest,
                                  "cc" + rest + ".x",
                                  "cc" + rest + "x"};
  for (const std::size_t at : {2u, 35u, 52u}) {
    std::string text = kParent;
    text[at] = '_';
    bad.push_back(text);
  }
  for (const std::size_t at : {0u, 1u, 3u, 34u, 36u, 51u, 53u, 54u}) {
    for (const char c : {'A', 'F', 'g', '-', ' ', '\0'}) {
      std::string text = kParent;
      text[at] = c;
      bad.push_back(text);
    }
  }
  bad.push_back("00-" + std::string(32, '0') + "-" + std::string(kSpan) + "-01");
  bad.push_back("00-" + std::string(kTrace) + "-" + std::string(16, '0') + "-01");
  for (const std::string& text : bad) EXPECT_FALSE(parse_traceparent(text)) << text;
}

TEST(TraceParent, TakesAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    if (const auto parent = parse_traceparent(bytes)) RC_ASSERT(parent->trace.is_set());
  }));
}

TEST(Trace, ContinuesTheCallers) {
  Headers request;
  request.add("TraceParent", kParent);
  request.add("tracestate", "a=1,b=2");
  request.add("tracestate", "");
  request.add("Tracestate", "c=3");
  const TraceContext context = begin_trace(request);
  EXPECT_EQ(context.trace.text(), kTrace);
  EXPECT_EQ(context.parent.text(), kSpan);
  EXPECT_TRUE(context.span.is_set());
  EXPECT_NE(context.span.text(), kSpan);
  EXPECT_TRUE(context.sampled);
  EXPECT_EQ(context.state, "a=1,b=2,c=3");

  Headers call;
  call.add("traceparent", "old");
  call.add("TraceParent", "older");
  const SpanId span = new_span_id();
  set_trace_headers(context, span, call);
  EXPECT_EQ(call.count("traceparent"), 1u);
  EXPECT_EQ(*call.find("traceparent"),
            "00-" + std::string(kTrace) + "-" + std::string(span.text()) + "-01");
  EXPECT_EQ(*call.find("tracestate"), "a=1,b=2,c=3");
}

TEST(Trace, PassesOnThatItIsNotSampled) {
  Headers request;
  request.add("traceparent", kParent.substr(0, 53) + "00");
  const TraceContext context = begin_trace(request);
  EXPECT_FALSE(context.sampled);
  Headers call;
  set_trace_headers(context, context.span, call);
  EXPECT_TRUE(call.find("traceparent")->ends_with("-00"));
}

TEST(Trace, BeginsWhereThereIsNoGoodOne) {
  Headers none, bad, two;
  none.add("tracestate", "a=1");
  bad.add("traceparent", "00-x");
  bad.add("tracestate", "a=1");
  two.add("traceparent", kParent);
  two.add("traceparent", kParent);
  for (const Headers* request : {&none, &bad, &two}) {
    const TraceContext context = begin_trace(*request);
    EXPECT_TRUE(context.trace.is_set());
    EXPECT_NE(context.trace.text(), kTrace);
    EXPECT_FALSE(context.parent.is_set());
    EXPECT_TRUE(context.sampled);
    EXPECT_EQ(context.state, "");
    Headers call;
    call.add("tracestate", "a=1");
    set_trace_headers(context, new_span_id(), call);
    EXPECT_TRUE(parse_traceparent(*call.find("traceparent")));
    EXPECT_EQ(call.find("tracestate"), nullptr);
  }
}

TEST(Trace, IdsDoNotRepeat) {
  std::vector<std::vector<std::string>> made(4);
  std::vector<std::thread> threads;
  for (auto& list : made) {
    threads.emplace_back([&list] {
      for (int i = 0; i < 1000; ++i) list.emplace_back(new_trace_id().text());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& list : made) all.insert(list.begin(), list.end());
  EXPECT_EQ(all.size(), 4000u);
}

}  // namespace
}  // namespace fixpoint

#include "cache/base/canonical_number.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace fixpoint {
namespace {

std::string canonical(const std::string& literal) {
  return canonical_number(literal, std::strtod(literal.c_str(), nullptr)).value_or("refused");
}

std::string scientific(double value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  return {buffer.data(), end.ptr};
}

std::string seventeen_digits(double value) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.16e", value);
  return buffer.data();
}

struct Sample {
  std::uint64_t bits;
  const char* text;
};

// RFC 8785, appendix B (without NaN and Infinity, which JSON cannot write).
constexpr Sample kRfcSamples[] = {
    {0x0000000000000000, "0"},
    {0x8000000000000000, "0"},
    {0x0000000000000001, "5e-324"},
    {0x8000000000000001, "-5e-324"},
    {0x7fefffffffffffff, "1.7976931348623157e+308"},
    {0xffefffffffffffff, "-1.7976931348623157e+308"},
    {0x4340000000000000, "9007199254740992"},
    {0xc340000000000000, "-9007199254740992"},
    {0x4430000000000000, "295147905179352830000"},
    {0x44b52d02c7e14af5, "9.999999999999997e+22"},
    {0x44b52d02c7e14af6, "1e+23"},
    {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
    {0x444b1ae4d6e2ef4e, "999999999999999700000"},
    {0x444b1ae4d6e2ef4f, "999999999999999900000"},
    {0x444b1ae4d6e2ef50, "1e+21"},
    {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
    {0x3eb0c6f7a0b5ed8d, "0.000001"},
    {0x41b3de4355555553, "333333333.3333332"},
    {0x41b3de4355555554, "333333333.33333325"},
    {0x41b3de4355555555, "333333333.3333333"},
    {0x41b3de4355555556, "333333333.3333334"},
    {0x41b3de4355555557, "333333333.33333343"},
    {0xbecbf647612f3696, "-0.0000033333333333333333"},
    {0x43143ff3c1cb0959, "1424953923781206.2"},
};

TEST(CanonicalNumber, RfcSamples) {
  for (const Sample& sample : kRfcSamples) {
    const auto value = std::bit_cast<double>(sample.bits);
    EXPECT_EQ(canonical(scientific(value)), sample.text);
    EXPECT_EQ(canonical(sample.text), sample.text);
    if (std::abs(value) <= 9007199254740992.0) {
      EXPECT_EQ(canonical(seventeen_digits(value)), sample.text);
    }
  }
}

TEST(CanonicalNumber, SpellingsOfOneValueAreOneText) {
  for (const char* literal : {"100", "100.0", "1e2", "1E+2", "1000e-1", "0.1e3", "100.000e0"}) {
    EXPECT_EQ(canonical(literal), "100") << literal;
  }
  for (const char* literal : {"0", "-0", "0.0", "-0e5", "0e-99999999999", "0.000e99999999999"}) {
    EXPECT_EQ(canonical(literal), "0") << literal;
  }
  EXPECT_EQ(canonical("1000000000000000000000"), canonical("1e21"));
  EXPECT_EQ(canonical("123456789012345678901"), "123456789012345678901");
}

TEST(CanonicalNumber, WhatADoublePrintsIsWhatItIs) {
  EXPECT_EQ(canonical("0.10000000000000001"), "0.1");  // printf("%.17g", 0.1)
  EXPECT_EQ(canonical("0.1000000000000000055511151231257827021181583404541015625"), "0.1");
  EXPECT_EQ(canonical("333333333.33333331"), "333333333.3333333");
}

TEST(CanonicalNumber, WhatADoubleLosesIsKept) {
  EXPECT_EQ(canonical("1.00000000000000001"), "1.00000000000000001");
  EXPECT_EQ(canonical("333333333.33333329"), "333333333.33333329");  // the double is ...331346
  EXPECT_EQ(canonical("0.10000000000000002"), "0.10000000000000002");
  EXPECT_EQ(canonical("0.100000000000000001"), "0.100000000000000001");
  EXPECT_EQ(canonical("9007199254740993.0"), "9007199254740993");
  EXPECT_EQ(canonical("9007199254740993"), "9007199254740993");
  EXPECT_EQ(canonical("9007199254740992.5"), "9007199254740992.5");
  EXPECT_EQ(canonical("99999999999999991611392"), "9.9999999999999991611392e+22");
  EXPECT_EQ(canonical("1e-400"), "1e-400");
  EXPECT_EQ(canonical("-2.5e-400"), "-2.5e-400");
  EXPECT_EQ(canonical("1e-99999999999"), "refused");
}

TEST(CanonicalNumber, EveryDoubleComesBack) {
  EXPECT_TRUE(rc::check([](std::uint64_t bits) {
    const auto value = std::bit_cast<double>(bits);
    RC_PRE(std::isfinite(value));
    const std::string text = canonical(scientific(value));
    RC_ASSERT(std::strtod(text.c_str(), nullptr) == value);
    RC_ASSERT(canonical(text) == text);
    if (std::abs(value) <= 9007199254740992.0)
      RC_ASSERT(canonical(seventeen_digits(value)) == text);
  }));
}

// With m x 10^e and n x 10^e, different digits are different values, however long they are.
TEST(CanonicalNumber, DifferentLongNumbersNeverMeet) {
  EXPECT_TRUE(rc::check([](std::uint64_t high, std::uint64_t low, std::uint8_t step) {
    RC_PRE(step > 0 && high > 0 && low < UINT64_MAX - 255);
    const int exponent = *rc::gen::inRange(-330, 260);
    const auto literal = [&](std::uint64_t tail) {
      std::array<char, 80> buffer;
      std::snprintf(buffer.data(), buffer.size(), "%llu%020llue%d",
                    static_cast<unsigned long long>(high), static_cast<unsigned long long>(tail),
                    exponent);
      return std::string(buffer.data());
    };
    RC_ASSERT(canonical(literal(low)) != canonical(literal(low + step)));
  }));
}

}  // namespace
}  // namespace fixpoint

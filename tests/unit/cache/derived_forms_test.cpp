#include "cache/derived_forms.hpp"

#include <gtest/gtest.h>

#include "cache/entry.hpp"

namespace fixpoint {
namespace {

std::shared_ptr<const std::string> text(std::size_t size) {
  return std::make_shared<const std::string>(size, 'x');
}

TEST(DerivedForms, KeepsFourAndTheFirstOfEach) {
  const DerivedForms forms;
  EXPECT_EQ(forms.find(1), nullptr);
  const auto first = text(100);
  forms.keep(1, first);
  forms.keep(1, text(100));
  EXPECT_EQ(forms.find(1), first);
  for (int form = 2; form <= 5; ++form) forms.keep(form, text(100));
  EXPECT_NE(forms.find(4), nullptr);
  EXPECT_EQ(forms.find(5), nullptr);
}

TEST(DerivedForms, CountsWhatIsKept) {
  const auto counter = std::make_shared<std::atomic<std::uint64_t>>(0);
  {
    const DerivedForms forms;
    forms.keep(1, text(100));
    forms.count_in(counter);
    EXPECT_GE(*counter, 100u);
    forms.keep(2, text(1000));
    forms.keep(2, text(5000));  // not kept
    EXPECT_GE(*counter, 1100u);
    EXPECT_LT(*counter, 2000u);
    forms.count_in(nullptr);
    EXPECT_EQ(*counter, 0u);
    forms.count_in(counter);
    EXPECT_GE(*counter, 1100u);
  }
  EXPECT_EQ(*counter, 0u);
}

TEST(DerivedForms, ACopiedEntryHasNone) {
  Entry entry;
  entry.forms.keep(1, text(10));
  Entry copy = entry;
  EXPECT_EQ(copy.forms.find(1), nullptr);
  copy.forms.keep(2, text(10));
  copy = entry;
  EXPECT_EQ(copy.forms.find(2), nullptr);
  EXPECT_NE(entry.forms.find(1), nullptr);
}

}  // namespace
}  // namespace fixpoint

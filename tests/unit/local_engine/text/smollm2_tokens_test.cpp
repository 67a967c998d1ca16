// Token ids with the default model's own vocabulary against Hugging Face's tokenizers.
#include <gtest/gtest.h>

#include "local_engine/model_text.hpp"
#include "tests/unit/local_engine/model_support.hpp"
#include "tests/unit/local_engine/text/golden_tokens.hpp"

namespace fixpoint::test {
namespace {

TEST(Smollm2Tokens, IdsAreThoseOfTheReference) {
  const std::string path = smollm2_path();
  if (path.empty()) {
    GTEST_SKIP() << "the default model is not here: `fixpoint model pull smollm2-135m`, or set "
                    "FIXPOINT_TEST_MODEL";
  }
  const auto file = engine::GgufFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  auto text = engine::read_model_text(file->header());
  ASSERT_TRUE(text) << text.error().message;
  const nlohmann::json golden = read_golden("smollm2/tokens.json");
  for (const std::string& pre_tokenizer : kPreTokenizers) {
    text->tokenizer.pre_tokenizer = pre_tokenizer;
    expect_golden_ids(*make_tokenizer(text->tokenizer), pre_tokenizer, golden);
  }
}

}  // namespace
}  // namespace fixpoint::test

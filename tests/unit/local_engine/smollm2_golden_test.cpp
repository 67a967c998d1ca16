// The default model against an fp32 reference (tests/golden/make_smollm2.py): llama.cpp on an F32
// copy of the same weights. Skipped where the model is not on the machine.
#include <gtest/gtest.h>

#include "tests/unit/local_engine/golden_support.hpp"

namespace fixpoint::engine {
namespace {

class Smollm2Golden : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = test::smollm2_path();
    if (path_.empty()) {
      GTEST_SKIP() << "the default model is not here: `fixpoint model pull smollm2-135m`, or set "
                      "FIXPOINT_TEST_MODEL";
    }
    golden_ = test_golden::read_golden("smollm2/greedy.json");
  }

  std::string path_;
  test_golden::Json golden_;
};

TEST_F(Smollm2Golden, ForcedLogprobsAndGreedyTokens) {
  test_golden::expect_logprobs_and_greedy(path_, golden_);
}

TEST_F(Smollm2Golden, AnswersThroughTheEngine) {
  const auto engine = Engine::load(path_, {.threads = 2, .max_batch = 10}).value();
  EXPECT_EQ(engine->info().weights_digest, golden_["about"]["model_sha256"].get<std::string>());
  test_golden::expect_answers(*engine, golden_);
}

}  // namespace
}  // namespace fixpoint::engine

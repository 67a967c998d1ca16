// fixpoint-tiny against a forward pass in numpy over the same files (models/train/golden.py), which
// agrees with transformers.
#include <gtest/gtest.h>

#include "local_engine/mapped_file.hpp"
#include "local_engine/sha256.hpp"
#include "tests/unit/local_engine/golden_support.hpp"

namespace fixpoint::engine {
namespace {

const std::string kFolder = FIXPOINT_SOURCE_DIR "/local_engine/models/tiny";

TEST(TinyGolden, IsMadeFromTheseWeights) {
  Sha256 digest;
  digest.update(MappedFile::open(kFolder + "/model.safetensors").value().bytes());
  const auto golden = test_golden::read_golden("tiny/greedy.json");
  EXPECT_EQ(golden["about"]["model_sha256"].get<std::string>(), digest.finish());
}

TEST(TinyGolden, ForcedLogprobsAndGreedyTokens) {
  test_golden::expect_logprobs_and_greedy(kFolder, test_golden::read_golden("tiny/greedy.json"));
}

TEST(TinyGolden, AnswersThroughTheEngine) {
  const auto engine = Engine::load(kFolder, {.threads = 2, .max_batch = 10}).value();
  test_golden::expect_answers(*engine, test_golden::read_golden("tiny/greedy.json"));
}

}  // namespace
}  // namespace fixpoint::engine

// Bytes per second of Tokenizer::encode with SmolLM2's vocabulary on English text.
//
//   tokenizer_bench VOCABULARY.json TEXT [benchmark options]
//
// VOCABULARY.json has the form of tests/golden/tiny_bpe/vocabulary.json; TEXT is any file.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "local_engine/text/tokenizer.hpp"

namespace {

using namespace fixpoint::engine;

std::unique_ptr<Tokenizer> load(const char* path, const std::string& pre_tokenizer) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  TokenizerData data;
  data.tokens = json.at("tokens").get<std::vector<std::string>>();
  data.merges = json.at("merges").get<std::vector<std::string>>();
  data.is_special.resize(data.tokens.size());
  for (const std::size_t id : json.at("special")) data.is_special.at(id) = true;
  data.pre_tokenizer = pre_tokenizer;
  auto created = Tokenizer::create(std::move(data));
  if (!created) throw std::runtime_error(created.error().message);
  return std::move(*created);
}

void encode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  std::size_t tokens = 0;
  for (auto _ : state) {
    const std::vector<TokenId> ids = tokenizer.encode(text, true);
    tokens = ids.size();
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.counters["bytes_per_token"] =
      static_cast<double>(text.size()) / static_cast<double>(std::max<std::size_t>(tokens, 1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tokenizer_bench VOCABULARY.json TEXT [benchmark options]\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string one_letter(1 << 20, 'a');
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const char* name : {"smollm", "gpt-2", "llama-bpe", "qwen2"}) {
    const Tokenizer& tokenizer = *tokenizers.emplace_back(load(argv[1], name));
    const std::string label = std::string("encode/") + name;
    benchmark::RegisterBenchmark(label.c_str(), encode, std::cref(tokenizer), std::cref(text));
    benchmark::RegisterBenchmark((label + "/one_letter").c_str(), encode, std::cref(tokenizer),
                                 std::cref(one_letter));
  }
  argv[2] = argv[0];
  argc -= 2;
  benchmark::Initialize(&argc, argv + 2);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// The engine's public face: load a model, submit generations, receive tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "local_engine/generate.hpp"
#include "local_engine/result.hpp"
#include "local_engine/text/chat_template.hpp"
#include "local_engine/text/tokenizer.hpp"

namespace fixpoint::engine {

struct EngineOptions {
  std::string name = {};                        // how the gateway calls the model
  int threads = 0;                              // 0: one per core
  std::size_t context = 0;                      // tokens per sequence; 0: the model's own
  std::size_t max_batch = 8;                    // sequences that decode together
  std::size_t prefill_chunk = 256;              // prompt tokens per step
  std::size_t kv_bytes = std::size_t{2} << 30;  // memory for keys and values of all sequences
  std::size_t max_queue = 256;                  // waiting requests; more are refused as overloaded
};

struct ModelInfo {
  std::string name, architecture, file;
  std::string weights_digest;  // SHA-256 (hex): see ModelFiles
  // "fp-" + 16 hex digits over profile, weights, tokenizer, template, dtypes and device class.
  std::string fingerprint;
  // Tokens per sequence: the least of the model's, the option's and what kv_bytes holds.
  std::size_t context = 0;
  std::size_t vocabulary = 0, layers = 0, parameters = 0;
};

// Thread-safe. Owns its threads, the weights and the KV cache.
class Engine {
 public:
  // Loads a GGUF file or a folder in Hugging Face's form (load_model_files() lists the files);
  // afterwards nothing reads them. Errors: io, bad_model_file, unsupported,
  // bad_request for an option outside its range, overloaded if the KV memory cannot be had.
  static Result<std::unique_ptr<Engine>> load(const std::string& path, EngineOptions options);
  ~Engine();

  // Queues a generation; the callback receives events until one carries finish or error.
  // Refused at once (no callback): bad_request, context_exceeded, overloaded.
  Result<std::uint64_t> submit(GenerateRequest request, GenerateCallback callback);
  // The generation's callback gets Error cancelled, soon, unless it has already ended.
  void cancel(std::uint64_t id);

  const ModelInfo& info() const;
  const Tokenizer& tokenizer() const;
  const ChatTemplate* chat_template() const;  // null if the file has none

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::engine

// Stored entries from any bytes: garbage is an error, and what was read comes back the same after
// it was written. The first byte chooses the form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cache/base/digest.hpp"
#include "cache/entry_codec.hpp"
#include "cache/entry_json.hpp"

namespace {

using fixpoint::Entry;
using fixpoint::Result;

constexpr std::size_t kMaxBody = 1 << 20;

void expect(bool condition) {
  if (!condition) std::abort();
}

void expect_same(const Result<Entry>& back, const Entry& entry) {
  expect(back.has_value());
  expect(back->key.kind == entry.key.kind && back->key.hex == entry.key.hex &&
         back->key.material == entry.key.material && back->tenant == entry.tenant &&
         back->endpoint == entry.endpoint && back->model == entry.model &&
         back->provider == entry.provider && back->generation == entry.generation &&
         back->created_ms == entry.created_ms && back->first_token_ms == entry.first_token_ms &&
         back->total_ms == entry.total_ms && back->pace == entry.pace &&
         *back->body == *entry.body);
}

void expect_round_trips(Entry entry) {
  for (const std::size_t compress_above : {std::size_t{0}, kMaxBody}) {
    expect_same(fixpoint::decode_entry(fixpoint::encode_entry(entry, compress_above)), entry);
  }
  entry.key.hex = fixpoint::sha256_hex(entry.key.material);
  expect_same(fixpoint::entry_from_json(fixpoint::entry_to_json(entry)), entry);
  expect_same(fixpoint::entry_from_recording(fixpoint::entry_to_recording(entry)), entry);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: {
      // With the checksum that fits: without it nothing behind the checksum would be reached.
      std::string bytes = "FPE\x01" + std::string(input);
      const fixpoint::Sha256Bytes digest = fixpoint::sha256(bytes);
      bytes.append(digest.begin(), digest.end());
      if (const Result<Entry> entry = fixpoint::decode_entry(bytes, kMaxBody)) {
        expect_round_trips(*entry);
      }
      expect(!fixpoint::decode_entry(std::string_view(bytes).substr(0, bytes.size() - 1)));
      break;
    }
    case 1:
      if (const Result<Entry> entry = fixpoint::entry_from_recording(input)) {
        expect_round_trips(*entry);
      }
      break;
    case 2:
      if (const Result<Entry> entry = fixpoint::entry_from_json(input)) expect_round_trips(*entry);
      break;
    default: {
      // Any material, answer and field.
      Entry entry;
      const std::size_t first = input.size() / 2;
      entry.key.material = input.substr(0, first);
      entry.body = std::make_shared<const std::string>(input.substr(first));
      entry.model = input.substr(input.size() - input.size() / 4);
      expect_round_trips(entry);
    }
  }
  return 0;
}

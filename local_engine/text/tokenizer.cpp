#include "local_engine/text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "local_engine/sha256.hpp"
#include "local_engine/text/bpe.hpp"
#include "local_engine/text/pretokenize.hpp"
#include "local_engine/text/special_tokens.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine {

namespace {

// Far above every published vocabulary (about 260,000); a file that says more is absurd.
constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
constexpr std::size_t kMaxTokenBytes = std::size_t{1} << 16;

// The byte-level alphabet of GPT-2: printable Latin-1 stands for itself, the other 68 bytes, in
// order, for U+0100 and on. Indexed by code point; -1 where a code point stands for no byte.
std::array<int, 324> make_byte_alphabet() {
  std::array<int, 324> bytes;
  bytes.fill(-1);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    bytes[printable ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return bytes;
}

// False if a character of `spelling` stands for no byte.
bool spelling_to_bytes(std::string_view spelling, std::string& out) {
  static const std::array<int, 324> kAlphabet = make_byte_alphabet();
  while (!spelling.empty()) {
    const CodePoint point = decode_code_point(spelling);
    if (point.value >= kAlphabet.size() || kAlphabet[point.value] < 0) return false;
    out += static_cast<char>(kAlphabet[point.value]);
    spelling.remove_prefix(point.size);
  }
  return true;
}

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::bad_model_file, std::move(message));
}

std::string digest_of(const TokenizerData& data, const PreTokenizer& pre_tokenizer) {
  Sha256 digest;
  const auto number = [&](std::uint64_t value) { digest.update_part(std::to_string(value)); };
  const auto optional_id = [&](std::optional<TokenId> id) {
    digest.update_part(id ? std::to_string(*id) : "none");
  };
  digest.update_part("fixpoint byte-level BPE 1");
  digest.update_part(data.pre_tokenizer);
  digest.update_part(pre_tokenizer.unicode_versions());
  number(data.tokens.size());
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    digest.update_part(data.tokens[id]);
    number(data.is_special[id] ? 1 : 0);
  }
  number(data.merges.size());
  for (const std::string& merge : data.merges) digest.update_part(merge);
  optional_id(data.bos);
  optional_id(data.eos);
  number(data.end_of_turn.size());
  for (const TokenId id : data.end_of_turn) optional_id(id);
  number(data.add_bos ? 1 : 0);
  return digest.finish();
}

}  // namespace

struct Tokenizer::Impl {
  // What was asked for, without the strings that the members below hold in the form they are used
  // in.
  std::vector<bool> is_special;
  std::optional<TokenId> bos, eos;
  std::vector<bool> ends_generation;
  bool add_bos = false;

  std::string bytes;                 // of all tokens, one after the other
  std::vector<std::size_t> offsets;  // token id is bytes[offsets[id], offsets[id + 1])
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  SpecialTokens special;
  std::array<TokenId, 256> byte_ids;  // -1 for a byte that the vocabulary lacks
  MergeTable merges{0};
  // Words whose ids are known without merging: exact, because create() has merged each of them (or
  // the family takes whole words first). Views into `bytes`.
  std::unordered_map<std::string_view, TokenId> whole_words;
  std::size_t longest_whole_word = 0;
  std::string digest;

  std::string_view token(TokenId id) const {
    const auto at = static_cast<std::size_t>(id);
    if (id < 0 || at + 1 >= offsets.size()) throw std::out_of_range("token id");
    return std::string_view(bytes).substr(offsets[at], offsets[at + 1] - offsets[at]);
  }

  Result<void> read_tokens(const TokenizerData& data);
  Result<void> read_merges(const TokenizerData& data);
  void find_whole_words();

  void merge_word(std::string_view word, std::vector<TokenId>& ids) const {
    ids.clear();
    for (const char c : word) {
      const TokenId id = byte_ids[static_cast<unsigned char>(c)];
      if (id >= 0) ids.push_back(id);
    }
    merges.apply(ids);
  }

  void encode_text(std::string_view text, std::vector<TokenId>& out) const {
    std::vector<TokenId> ids;
    pre_tokenizer->split(text, [&](std::string_view word) {
      if (word.size() <= longest_whole_word) {
        const auto whole = whole_words.find(word);
        if (whole != whole_words.end()) {
          out.push_back(whole->second);
          return;
        }
      }
      merge_word(word, ids);
      out.insert(out.end(), ids.begin(), ids.end());
    });
  }
};

Result<void> Tokenizer::Impl::read_tokens(const TokenizerData& data) {
  if (data.tokens.size() > kMaxTokens) {
    return bad("vocabulary has " + std::to_string(data.tokens.size()) + " tokens; the limit is " +
               std::to_string(kMaxTokens));
  }
  if (data.is_special.size() != data.tokens.size()) {
    return bad("vocabulary has " + std::to_string(data.tokens.size()) + " tokens but " +
               std::to_string(data.is_special.size()) + " token types");
  }
  std::unordered_set<std::string_view> seen;
  seen.reserve(data.tokens.size());
  byte_ids.fill(-1);
  offsets.push_back(0);
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    const std::string& spelling = data.tokens[id];
    const std::string name = "token " + std::to_string(id);
    if (spelling.empty()) return bad(name + " is empty");
    if (spelling.size() > kMaxTokenBytes) {
      return bad(name + " is longer than " + std::to_string(kMaxTokenBytes) + " bytes");
    }
    if (!seen.insert(spelling).second) return bad(name + " '" + spelling + "' is there twice");
    if (data.is_special[id]) {
      bytes += spelling;
      special.add(spelling, static_cast<TokenId>(id));
    } else if (!spelling_to_bytes(spelling, bytes)) {
      return bad(name + " '" + spelling + "' is not in byte-level spelling");
    } else if (bytes.size() == offsets.back() + 1) {
      byte_ids[static_cast<unsigned char>(bytes.back())] = static_cast<TokenId>(id);
    }
    offsets.push_back(bytes.size());
  }
  is_special = data.is_special;
  return {};
}

Result<void> Tokenizer::Impl::read_merges(const TokenizerData& data) {
  std::unordered_map<std::string_view, TokenId> ids;
  ids.reserve(data.tokens.size());
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    if (!data.is_special[id]) ids.emplace(data.tokens[id], static_cast<TokenId>(id));
  }
  if (data.merges.size() > kMaxTokens) {
    return bad("vocabulary has " + std::to_string(data.merges.size()) + " merges; the limit is " +
               std::to_string(kMaxTokens));
  }
  merges = MergeTable(data.merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view merge = data.merges[rank];
    const std::string name = "merge " + std::to_string(rank) + " '" + data.merges[rank] + "'";
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos) return bad(name + " is not two tokens");
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    joined.assign(left);
    joined += right;
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    const auto joined_id = ids.find(joined);
    if (left_id == ids.end() || right_id == ids.end() || joined_id == ids.end()) {
      return bad(name + " names a token that is not in the vocabulary");
    }
    if (!merges.add(left_id->second, right_id->second,
                    {static_cast<std::uint32_t>(rank), joined_id->second})) {
      return bad(name + " is there twice");
    }
  }
  return {};
}

void Tokenizer::Impl::find_whole_words() {
  std::vector<TokenId> ids;
  whole_words.reserve(is_special.size());
  for (std::size_t at = 0; at < is_special.size(); ++at) {
    if (is_special[at]) continue;
    const auto id = static_cast<TokenId>(at);
    const std::string_view word = token(id);
    if (!pre_tokenizer->whole_words_first()) {
      merge_word(word, ids);
      // The size check is for bytes that the vocabulary lacks: they leave no id behind.
      if (ids.size() != 1 || ids[0] != id) continue;
    }
    whole_words.emplace(word, id);
    longest_whole_word = std::max(longest_whole_word, word.size());
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerData data) {
  auto pre_tokenizer = PreTokenizer::create(data.pre_tokenizer);
  if (!pre_tokenizer) return tl::make_unexpected(pre_tokenizer.error());
  auto impl = std::make_unique<Impl>();
  impl->pre_tokenizer = std::move(*pre_tokenizer);
  auto read = impl->read_tokens(data).and_then([&] { return impl->read_merges(data); });
  if (!read) return tl::make_unexpected(read.error());

  const auto in_range = [&](TokenId id) {
    return id >= 0 && static_cast<std::size_t>(id) < data.tokens.size();
  };
  impl->ends_generation.resize(data.tokens.size());
  std::vector<TokenId> ending = data.end_of_turn;
  if (data.eos) ending.push_back(*data.eos);
  for (const TokenId id : ending) {
    if (!in_range(id)) return bad("end-of-sequence id " + std::to_string(id) + " is no token");
    impl->ends_generation[static_cast<std::size_t>(id)] = true;
  }
  if (data.bos && !in_range(*data.bos)) {
    return bad("begin-of-sequence id " + std::to_string(*data.bos) + " is no token");
  }
  if (data.add_bos && !data.bos) return bad("add_bos is set but there is no begin-of-sequence id");
  impl->bos = data.bos;
  impl->eos = data.eos;
  impl->add_bos = data.add_bos;
  impl->digest = digest_of(data, *impl->pre_tokenizer);
  impl->find_whole_words();
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<TokenId> out;
  out.reserve(text.size() / 4 + 1);  // about four bytes a token in English
  std::size_t at = 0;
  while (parse_special) {
    const auto match = impl_->special.find(text, at);
    if (!match) break;
    impl_->encode_text(text.substr(at, match->begin - at), out);
    out.push_back(match->id);
    at = match->begin + match->size;
  }
  impl_->encode_text(text.substr(at), out);
  return out;
}

std::string_view Tokenizer::bytes(TokenId id) const {
  return impl_->token(id);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string out;
  for (const TokenId id : ids) out += impl_->token(id);
  return out;
}

bool Tokenizer::is_special(TokenId id) const {
  return impl_->is_special.at(static_cast<std::size_t>(id));
}

bool Tokenizer::ends_generation(TokenId id) const {
  return impl_->ends_generation.at(static_cast<std::size_t>(id));
}

std::optional<TokenId> Tokenizer::bos() const {
  return impl_->bos;
}
std::optional<TokenId> Tokenizer::eos() const {
  return impl_->eos;
}
bool Tokenizer::add_bos() const {
  return impl_->add_bos;
}
std::size_t Tokenizer::size() const {
  return impl_->is_special.size();
}
const std::string& Tokenizer::digest() const {
  return impl_->digest;
}

}  // namespace fixpoint::engine

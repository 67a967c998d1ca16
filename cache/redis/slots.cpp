#include "cache/redis/slots.hpp"

#include <algorithm>
#include <charconv>

namespace fixpoint::redis {
namespace {

constexpr std::array<std::uint16_t, 256> make_table() {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
    }
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kTable = make_table();

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  return ec == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Nodes that do not know their own name announce none, or "?".
std::string host_or(std::string_view announced, const Address& asked) {
  return announced.empty() || announced == "?" ? asked.host : std::string(announced);
}

constexpr std::size_t kMaxHost = 253;

tl::unexpected<Error> bad(std::string_view why) {
  return fail(ErrorCode::protocol, "Redis's answer to CLUSTER SLOTS " + std::string(why));
}

}  // namespace

std::uint16_t crc16(std::string_view bytes) {
  std::uint16_t crc = 0;
  for (const char c : bytes) {
    const unsigned at = ((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xff;
    crc = static_cast<std::uint16_t>((crc << 8) ^ kTable[at]);
  }
  return crc;
}

std::uint16_t key_slot(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return crc16(key) % kSlots;
}

std::optional<Redirect> parse_redirect(std::string_view error, const Address& asked) {
  Redirect redirect;
  if (error.starts_with("MOVED ")) {
    error.remove_prefix(6);
  } else if (error.starts_with("ASK ")) {
    redirect.ask = true;
    error.remove_prefix(4);
  } else {
    return std::nullopt;
  }
  const std::size_t space = error.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  if (!parse_number(error.substr(0, space), redirect.slot) || redirect.slot >= kSlots) {
    return std::nullopt;
  }
  const std::string_view node = error.substr(space + 1);
  const std::size_t colon = node.rfind(':');  // IPv6 addresses come without brackets
  if (colon == std::string_view::npos || colon > kMaxHost) return std::nullopt;
  redirect.node.host = host_or(node.substr(0, colon), asked);
  if (!parse_number(node.substr(colon + 1), redirect.node.port) || redirect.node.port == 0) {
    return std::nullopt;
  }
  return redirect;
}

Result<SlotMap> SlotMap::parse(const redisReply& reply, const Address& asked) {
  if (!is_array(reply)) return bad("is no array");
  SlotMap map;
  for (std::size_t i = 0; i < reply.elements; ++i) {
    const redisReply& range = *reply.element[i];
    if (!is_array(range) || range.elements < 3) return bad("has a range without a node");
    const redisReply& from = *range.element[0];
    const redisReply& to = *range.element[1];
    if (!is_integer(from) || !is_integer(to) || from.integer < 0 || to.integer < from.integer ||
        to.integer >= kSlots) {
      return bad("has a range outside 0 to 16383");
    }
    const redisReply& node = *range.element[2];
    if (!is_array(node) || node.elements < 2 || !is_integer(*node.element[1]) ||
        node.element[1]->integer < 1 || node.element[1]->integer > 65'535 ||
        (!is_text(*node.element[0]) && !is_nil(*node.element[0])) ||
        text_of(*node.element[0]).size() > kMaxHost) {
      return bad("has a node without host and port");
    }
    const Address master{host_or(text_of(*node.element[0]), asked),
                         static_cast<std::uint16_t>(node.element[1]->integer)};
    const std::optional<std::uint16_t> index = map.index_of(master);
    if (!index) return bad("has more than 1000 masters");
    for (auto slot = from.integer; slot <= to.integer; ++slot) {
      map.owner_[static_cast<std::size_t>(slot)] = *index;
    }
  }
  return map;
}

std::optional<std::uint16_t> SlotMap::index_of(const Address& master) {
  const auto found = std::find(masters_.begin(), masters_.end(), master);
  if (found == masters_.end() && masters_.size() >= kMaxMasters) return std::nullopt;
  const auto index = static_cast<std::uint16_t>(found - masters_.begin());
  if (found == masters_.end()) masters_.push_back(master);
  return index;
}

const Address* SlotMap::master_of(std::uint16_t slot) const {
  const std::uint16_t owner = owner_.at(slot);
  return owner == kNobody ? nullptr : &masters_[owner];
}

void SlotMap::set(std::uint16_t slot, const Address& master) {
  if (const std::optional<std::uint16_t> index = index_of(master)) owner_.at(slot) = *index;
}

}  // namespace fixpoint::redis

// Redis Cluster: which node has which key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cache/redis/codec.hpp"
#include "cache/redis/url.hpp"

namespace fixpoint::redis {

inline constexpr std::uint16_t kSlots = 16'384;

// CRC-16/XMODEM: polynomial 0x1021, from zero, not reflected (Redis Cluster specification).
std::uint16_t crc16(std::string_view bytes);
// The slot of a key: of what stands between its first "{" and the next "}", if that is not empty,
// otherwise of the whole key.
std::uint16_t key_slot(std::string_view key);

// Where an error reply sends a command.
struct Redirect {
  bool ask = false;  // ASK: this once; otherwise MOVED: from now on
  std::uint16_t slot = 0;
  Address node;
};
// None if the text is no redirect, or a malformed one. `asked` is the node that answered: its host
// is meant when the redirect names none.
std::optional<Redirect> parse_redirect(std::string_view error, const Address& asked);

// The masters of all slots.
class SlotMap {
 public:
  // Of a reply to CLUSTER SLOTS. `asked` as above. Errors: protocol.
  static Result<SlotMap> parse(const redisReply& reply, const Address& asked);

  const std::vector<Address>& masters() const { return masters_; }
  // Null: nobody serves the slot.
  const Address* master_of(std::uint16_t slot) const;
  // What a MOVED said. Ignored when there are more than kMaxMasters.
  void set(std::uint16_t slot, const Address& master);

 private:
  static constexpr std::size_t kMaxMasters = 1000;  // of the Redis Cluster specification
  static constexpr std::uint16_t kNobody = 0xffff;
  std::optional<std::uint16_t> index_of(const Address& master);

  std::vector<Address> masters_;
  std::vector<std::uint16_t> owner_ = std::vector<std::uint16_t>(kSlots, kNobody);  // masters_[i]
};

}  // namespace fixpoint::redis

#include "cache/base/digest.hpp"

#include <openssl/evp.h>

#include <new>

namespace fixpoint {

Sha256Bytes sha256(std::string_view bytes) {
  // Fetched once: the look-up in OpenSSL 3's provider tables costs more than hashing a short key.
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Sha256Bytes digest{};
  if (algorithm == nullptr ||
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, algorithm, nullptr) != 1) {
    throw std::bad_alloc();  // the default provider always has SHA-256; only memory can be missing
  }
  return digest;
}

std::string to_hex(const Sha256Bytes& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace fixpoint

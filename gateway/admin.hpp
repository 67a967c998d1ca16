// How the command line reaches a running gateway: the store allows one writer, so what changes it
// while a gateway holds it has to be asked of that gateway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/store.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/http/server.hpp"

namespace fixpoint {

struct Gateway;

// A file beside the cache that names the gateway holding it: its URL and a token made at its start,
// readable by the same user only. Removed when the gateway ends.
class AdminFile {
 public:
  // Throws std::system_error when the file cannot be written (start-up).
  AdminFile(const std::string& cache_path, const std::string& listen_address, std::uint16_t port);
  ~AdminFile();
  AdminFile(const AdminFile&) = delete;
  AdminFile& operator=(const AdminFile&) = delete;
  const std::string& token() const { return token_; }

 private:
  std::string path_, token_;
};

// POST /admin/cache/purge with {"key", "model", "older_than_ms"}; the caller has checked the token.
Task<ApiResult<std::uint64_t>> admin_purge(Gateway& gateway, const Request& request);
// Constant-time. False when no token was made.
bool admin_allowed(const Gateway& gateway, const Request& request);

// Asks the gateway that holds the cache at cache_path to purge. Blocks.
// Errors: not_found when no gateway left its file there; unreachable and the like.
Result<std::uint64_t> purge_through_gateway(const std::string& cache_path,
                                            const PurgeFilter& filter);

}  // namespace fixpoint

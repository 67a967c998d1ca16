// How the command line reaches a running gateway: what a gateway holds open for writing takes one
// writer, so that changes have to be asked of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cache/base/result.hpp"
#include "cache/store.hpp"

namespace fixpoint {

// <data_dir>/gateway.json names the gateway that runs on this data folder: its URL and a token made
// at its start, readable by the same user only. Removed when the gateway ends; one that was killed
// leaves it behind, and its token opens nothing any more. Two gateways cannot share a data folder:
// the second one does not get the key file, so open that one first.
class AdminFile {
 public:
  // Throws std::system_error when the file cannot be written (start-up).
  AdminFile(const std::string& data_dir, const std::string& listen_address, std::uint16_t port,
            bool tls);
  ~AdminFile();
  AdminFile(const AdminFile&) = delete;
  AdminFile& operator=(const AdminFile&) = delete;
  const std::string& token() const { return token_; }

 private:
  std::string path_, token_;
};

// Asks the gateway that runs on this data folder. `body` null: none is sent. Blocks, for half a
// minute at most. Errors: unreachable (no gateway left its file there, it is gone, or it has no
// cache to purge; closed and timeout are like it), not_found and invalid as the gateway answers, io
// for other refusals.
Result<nlohmann::ordered_json> ask_gateway(const std::string& data_dir, const std::string& method,
                                           const std::string& path,
                                           const nlohmann::ordered_json& body = nullptr);

// What an answer of the admin API says, whoever gave it. Errors: as above.
Result<nlohmann::ordered_json> admin_result(int status, const std::string& body);

// The number of entries removed. Errors: as ask_gateway().
Result<std::uint64_t> purge_through_gateway(const std::string& data_dir, const EntryFilter& filter);

}  // namespace fixpoint

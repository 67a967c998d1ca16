// One stored answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cache/derived_forms.hpp"
#include "cache/key.hpp"

namespace fixpoint {

struct Entry {
  CacheKey key;
  std::string tenant;                // cache namespace; empty: no tenants configured
  std::string endpoint;              // "chat.completions", "responses", ...
  std::string model;                 // as the answer names it
  std::string provider;              // upstream's name, or "local"
  std::string generation;            // token log id of the generation that made it
  std::int64_t created_ms = 0;       // Unix milliseconds
  std::uint32_t first_token_ms = 0;  // how long the generation took to its first token
  std::uint32_t total_ms = 0;        // and to its end
  // When equal parts of its stream had come, the first event first: milliseconds since the request,
  // in decimal, with a space between two. Empty: not known.
  std::string pace;
  std::shared_ptr<const std::string> body;  // the complete non-streamed JSON answer, byte for byte
  // A store that several gateways share keeps what it has under this key already: two of them may
  // make an answer at the same time, and a key has one. Not stored.
  bool keeps_first = false;
  DerivedForms forms = {};  // not stored, and not copied with the entry
};

// The bytes that an entry takes while it waits to be written.
inline std::size_t size_in_queue(const Entry& entry) {
  return sizeof(Entry) + entry.key.material.size() + entry.tenant.size() + entry.endpoint.size() +
         entry.model.size() + entry.provider.size() + entry.generation.size() + entry.pace.size() +
         entry.body->size();
}

// Entries never change: threads share them. Null: there is none.
using EntryPtr = std::shared_ptr<const Entry>;

}  // namespace fixpoint

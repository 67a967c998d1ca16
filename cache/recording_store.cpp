// Answers as files that people read, compare and edit.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "cache/entry_json.hpp"
#include "cache/entry_matcher.hpp"
#include "cache/recording_difference.hpp"
#include "cache/store.hpp"

namespace fixpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".json";
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{256} << 20;
constexpr std::size_t kMaxNamePart = 80;  // file systems take names of 255 bytes

// Letters, digits, '.', '_' and '-'; never at the start what a shell or `ls` takes for something
// else.
std::string name_part(std::string_view text) {
  std::string part;
  for (const char c : text.substr(0, kMaxNamePart)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       ((c == '.' || c == '_' || c == '-') && !part.empty());
    part += plain ? c : '_';
  }
  return part.empty() ? "_" : part;
}

Result<std::string> read_file(const fs::path& path) {
  std::error_code code;
  const std::uintmax_t size = fs::file_size(path, code);
  if (code) return fail(ErrorCode::io, path.string() + ": " + code.message());
  if (size > kMaxFileBytes) {
    return fail(ErrorCode::invalid, path.string() + ": larger than 256 MiB");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return fail(ErrorCode::io, path.string() + ": cannot be read");
  return std::move(text).str();
}

// Whoever reads `path` sees the old file or the new one, whole.
Result<void> write_file(const fs::path& path, const std::string& text) {
  const std::string temporary = path.string() + ".tmp";
  {
    errno = 0;
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    const int error = errno;
    if (!file) {
      const std::string reason = error == 0 ? "" : ": " + std::generic_category().message(error);
      return fail(ErrorCode::io, temporary + ": cannot be written" + reason);
    }
  }
  std::error_code code;
  fs::rename(temporary, path, code);
  if (code) return fail(ErrorCode::io, path.string() + ": " + code.message());
  return {};
}

class Recording final : public RecordingStore {
 public:
  Recording(fs::path directory, std::function<void(const Error&)> on_write_error)
      : directory_(std::move(directory)), on_write_error_(std::move(on_write_error)) {}

  // Reads every recording. Errors: as open_recording().
  Result<void> load() {
    std::error_code code;
    fs::create_directories(directory_, code);
    if (code) return fail(ErrorCode::io, directory_.string() + ": " + code.message());
    std::vector<std::string> names;
    fs::directory_iterator files(directory_, code);
    for (; !code && files != fs::directory_iterator(); files.increment(code)) {
      if (files->path().extension() == kSuffix) names.push_back(files->path().filename().string());
    }
    if (code) return fail(ErrorCode::io, directory_.string() + ": " + code.message());
    std::sort(names.begin(), names.end());  // so that messages do not depend on the file system
    for (const std::string& name : names) {
      const fs::path path = directory_ / name;
      const Result<std::string> text = read_file(path);
      if (!text) return tl::make_unexpected(text.error());
      Result<Entry> entry = entry_from_recording(*text);
      if (!entry) return fail(entry.error().code, path.string() + ": " + entry.error().message);
      const auto shared = std::make_shared<const Entry>(std::move(*entry));
      const auto [item, added] = items_.emplace(shared->key.name(), Item{name, shared});
      if (!added) {
        return fail(ErrorCode::invalid,
                    path.string() + ": the same key as in " + item->second.file);
      }
      files_.insert(name);
    }
    return {};
  }

  void get(const CacheKey& key, GetDone done) override { done(find(key)); }

  // Writes the file before it returns: a test suite's recorder has nothing better to do.
  void put(EntryPtr entry) override {
    if (entry == nullptr || entry->body == nullptr) {
      throw std::invalid_argument("Store::put: entry without a body");
    }
    const std::string key = entry->key.name();
    if (!parse_key_name(key)) throw std::invalid_argument("Store::put: not a key");
    const Result<void> written = record(key, std::move(entry));
    if (written) return;
    ++failed_;
    if (on_write_error_) on_write_error_(written.error());
  }

  Result<std::uint64_t> purge(const EntryFilter& filter) override {
    const Result<EntryMatcher> matches = EntryMatcher::of(filter);
    if (!matches) return tl::make_unexpected(matches.error());
    const std::unique_lock lock(mutex_);
    std::uint64_t removed = 0;
    for (auto item = items_.begin(); item != items_.end();) {
      const auto next = std::next(item);
      if ((*matches)(*item->second.entry)) {
        std::error_code code;
        fs::remove(directory_ / item->second.file, code);
        if (code) return fail(ErrorCode::io, item->second.file + ": " + code.message());
        files_.erase(item->second.file);
        items_.erase(item);
        ++removed;
      }
      item = next;
    }
    return removed;
  }

  Result<std::uint64_t> for_each(const EntryFilter& filter,
                                 const std::function<bool(const Entry&)>& visit) override {
    const Result<EntryMatcher> matches = EntryMatcher::of(filter);
    if (!matches) return tl::make_unexpected(matches.error());
    for (const Item& item : items()) {  // outside of the lock
      if ((*matches)(*item.entry) && !visit(*item.entry)) break;
    }
    return 0;
  }

  Result<StoreStats> stats() override {
    StoreStats stats;
    for (const Item& item : items()) {
      const Entry& entry = *item.entry;
      const bool first = stats.entries++ == 0;
      stats.bytes += entry.body->size();
      ++(entry.key.kind == KeyKind::prompt ? stats.prompt_entries : stats.body_entries);
      stats.oldest_ms = first ? entry.created_ms : std::min(stats.oldest_ms, entry.created_ms);
      stats.newest_ms = first ? entry.created_ms : std::max(stats.newest_ms, entry.created_ms);
    }
    stats.stored_bytes = stats.bytes;
    return stats;
  }

  void flush() override {}

  std::uint64_t failed_writes() const override { return failed_; }

  std::string explain_miss(const CacheKey& key) override {
    if (key.material.empty()) return "";
    const std::vector<Item> all = items();
    std::vector<std::pair<std::string, const CacheKey*>> recordings;
    for (const Item& item : all) recordings.emplace_back(item.file, &item.entry->key);
    return nearest_difference(key, recordings);
  }

 private:
  struct Item {
    std::string file;
    EntryPtr entry;
  };

  Result<void> record(const std::string& key, EntryPtr entry) {
    const std::unique_lock lock(mutex_);
    const auto found = items_.find(key);
    // Recorded again with the same answer: nothing to see in a diff.
    if (found != items_.end() && *found->second.entry->body == *entry->body) return {};
    const std::string file = found != items_.end() ? found->second.file : file_for(*entry);
    const std::string text = entry_to_recording(*entry);
    if (text.size() > kMaxFileBytes) {  // load() would not take it
      return fail(ErrorCode::invalid, (directory_ / file).string() + ": larger than 256 MiB");
    }
    Result<void> written = write_file(directory_ / file, text);
    if (!written) return written;
    files_.insert(file);
    items_.insert_or_assign(key, Item{file, std::move(entry)});
    return {};
  }

  Found find(const CacheKey& key) {
    const std::string name = key.name();
    const std::shared_lock lock(mutex_);
    const auto found = items_.find(name);
    if (found == items_.end()) {
      if (Result<CacheKey> valid = parse_key_name(name); !valid) {
        return tl::make_unexpected(std::move(valid.error()));
      }
      return EntryPtr();
    }
    const EntryPtr& entry = found->second.entry;
    if (!key.material.empty() && key.material != entry->key.material) {
      return fail(ErrorCode::corrupt,
                  found->second.file + ": the recorded key material is not the request's");
    }
    return entry;
  }

  // 12 digits tell keys apart but for one in a million million or so; the rest get all of them.
  std::string file_for(const Entry& entry) const {
    const std::string begin = name_part(entry.endpoint) + '-' + name_part(entry.model) + '-';
    std::string name = begin + entry.key.hex.substr(0, 12) + std::string(kSuffix);
    if (!files_.contains(name)) return name;
    return begin + (entry.key.kind == KeyKind::prompt ? "prompt-" : "body-") + entry.key.hex +
           std::string(kSuffix);
  }

  std::vector<Item> items() const {
    const std::shared_lock lock(mutex_);
    std::vector<Item> all;
    for (const auto& [key, item] : items_) all.push_back(item);
    return all;
  }

  const fs::path directory_;
  const std::function<void(const Error&)> on_write_error_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, Item> items_;  // by CacheKey::name()
  std::set<std::string> files_;        // the names of items_
  std::atomic<std::uint64_t> failed_ = 0;
};

}  // namespace

Result<std::unique_ptr<RecordingStore>> open_recording(
    const std::string& directory, std::function<void(const Error&)> on_write_error) {
  if (directory.empty()) return fail(ErrorCode::invalid, "the recording's directory: empty");
  auto recording = std::make_unique<Recording>(directory, std::move(on_write_error));
  if (Result<void> loaded = recording->load(); !loaded) {
    return tl::make_unexpected(std::move(loaded.error()));
  }
  return recording;
}

}  // namespace fixpoint

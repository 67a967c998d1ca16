// What readers derive from an entry's body and want to find again with the entry.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace fixpoint {

// A few texts by number, of the entry that this is a member of; never stored with it. Its users
// agree on the numbers. Thread-safe; const, because an entry is const to those who share it.
class DerivedForms {
 public:
  static constexpr std::size_t kMaxForms = 4;

  DerivedForms() = default;
  // A copied entry may get another body: it starts without forms.
  DerivedForms(const DerivedForms&) {}
  DerivedForms& operator=(const DerivedForms&) {
    const std::lock_guard lock(mutex_);
    drop();
    return *this;
  }
  ~DerivedForms() { drop(); }

  // Null: there is none.
  std::shared_ptr<const std::string> find(int form) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (forms_[i].first == form) return forms_[i].second;
    }
    return nullptr;
  }

  // The first text of a form stays; a fifth form is not kept.
  void keep(int form, std::shared_ptr<const std::string> text) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (forms_[i].first == form) return;
    }
    if (count_ == kMaxForms || text == nullptr) return;
    bytes_ += text->capacity();
    if (counter_) *counter_ += text->capacity();
    forms_[count_++] = {form, std::move(text)};
  }

  // For a store that bounds its memory: `counter` goes up and down with the forms' bytes from now
  // on; it replaces one that was given before. Null: nobody counts.
  void count_in(std::shared_ptr<std::atomic<std::uint64_t>> counter) const {
    const std::lock_guard lock(mutex_);
    if (counter_) *counter_ -= bytes_;
    counter_ = std::move(counter);
    if (counter_) *counter_ += bytes_;
  }

 private:
  void drop() {
    if (counter_) *counter_ -= bytes_;
    for (std::size_t i = 0; i < count_; ++i) forms_[i] = {};
    count_ = 0;
    bytes_ = 0;
  }

  mutable std::mutex mutex_;
  mutable std::array<std::pair<int, std::shared_ptr<const std::string>>, kMaxForms> forms_;
  mutable std::size_t count_ = 0;
  mutable std::uint64_t bytes_ = 0;
  mutable std::shared_ptr<std::atomic<std::uint64_t>> counter_;
};

}  // namespace fixpoint

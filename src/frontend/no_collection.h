// Garbage collection rests while something is captured: capturing makes many objects, none of them garbage in cycles,
// and a full collection in the middle costs more than it all. What is in the youngest generation meanwhile was made
// meanwhile.
#pragma once

namespace cresset::frontend {

// Under the GIL.
class NoCollection {
 public:
  NoCollection();
  ~NoCollection();
  NoCollection(const NoCollection&) = delete;
  bool ages_known() const { return was_enabled_; }

 private:
  bool was_enabled_;
};

// Whether the user has garbage collected, though it rests.
bool user_collects();
void set_user_collects(bool wanted);

}  // namespace cresset::frontend

// Garbage collection rests while something is captured: capturing makes many objects, none of them garbage in cycles,
// and a full collection in the middle costs more than it all. What is in the youngest generation meanwhile was made
// meanwhile. The collector is not turned off, which other threads and the program would see: it believes that little
// was made.
#pragma once

namespace cresset::frontend {

// Under the GIL.
class NoCollection {
 public:
  NoCollection();
  ~NoCollection();
  NoCollection(const NoCollection&) = delete;
  bool ages_known() const { return were_collected_; }
  // The program may have had garbage collected meanwhile, after which the collector counts as ever.
  static void again();

 private:
  bool were_collected_;  // the young ones, when it began
};

}  // namespace cresset::frontend

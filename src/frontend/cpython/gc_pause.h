// Garbage collection pauses during a capture. A capture creates many objects which are not cyclic garbage, and a full
// collection in the middle costs more than the capture. During the pause, the youngest generation contains exactly the
// objects created since its start. Disabling the collector would be visible to other threads and to the program.
// Instead its allocation counter is kept low.
#pragma once

namespace cresset::frontend {

// Under the GIL.
class NoCollection {
 public:
  NoCollection();
  ~NoCollection();
  NoCollection(const NoCollection&) = delete;
  bool ages_known() const { return were_collected_; }
  // Renews the pause, because the program may have run a collection which reset the collector's counters.
  static void again();

 private:
  bool were_collected_;  // whether the youngest generation was collected at the beginning
};

}  // namespace cresset::frontend

// Notices that Python or C++ code seeds, saves or restores torch's default CPU generator while a call is captured.
//
// Random operators are recorded, not run: the program draws when it runs, from the generator as the caller left it. A
// seed set inside the call happens once, at capture, and no program could repeat it. So the generator is moved on by a
// number of its own before the capture and at each random operator; a state that is not the one left there was put
// there by somebody. When the watch ends the generator is as it was found: the program, or eager, then draws from
// there.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

namespace cresset::bridge {

class RandomWatch {
 public:
  RandomWatch();
  ~RandomWatch();  // restores
  RandomWatch(const RandomWatch&) = delete;

  // Ends the watch: the generator is as it was found, for the operators that were recorded. Idempotent.
  void release();
  // After those drew: a state that the call set itself is in force.
  void restore_seeded();

  // Whether somebody else changed the state since the last look. Call at each random operator.
  bool disturbed();

 private:
  void advance();
  bool as_left() const;

  at::CPUGeneratorImpl* generator_;
  at::mt19937_data_pod found_, left_;
  std::optional<at::mt19937_data_pod> seeded_;
  bool released_ = false;
  std::optional<float> found_float_;  // the second number of a pair of normal ones, kept for the next draw
  std::optional<double> found_double_;
};

}  // namespace cresset::bridge

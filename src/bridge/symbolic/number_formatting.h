// Formatting a number as a string specializes it; the guard names this reason.
#pragma once

namespace cresset::bridge {

// RAII: guards of this thread get the reason sym::kTextOfNumber.
class MakingText {
 public:
  MakingText();
  ~MakingText();
  MakingText(const MakingText&) = delete;

 private:
  bool before_;
};

}  // namespace cresset::bridge

// Formatting a number as a string specializes it; the guard names this reason.
#pragma once

namespace cresset::bridge {

// RAII: guards of this thread get the reason sym::kTextOfNumber.
class MakingString {
 public:
  MakingString();
  ~MakingString();
  MakingString(const MakingString&) = delete;

 private:
  bool before_;
};

}  // namespace cresset::bridge

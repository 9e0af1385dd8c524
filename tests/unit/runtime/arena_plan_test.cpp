#include "runtime/arena_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace cresset::runtime {
namespace {

using Part = ArenaPlan::Part;

// Programs of tensors alone: bytes and the steps between which they are alive.
struct Tensors {
  Program program;
  std::vector<int64_t> numbers;

  TensorId add(int64_t bytes, uint32_t first, uint32_t last, Home home = Home::Arena) {
    TensorSlot slot;
    slot.home = home;
    slot.bytes = {static_cast<uint32_t>(numbers.size())};
    slot.first_step = first;
    slot.last_step = last;
    numbers.push_back(bytes);
    program.tensors.push_back(slot);
    return {static_cast<uint32_t>(program.tensors.size() - 1)};
  }
  void continues(TensorId id, TensorId from) { program.tensors[id.index].continues = from; }
  ArenaPlan plan(std::span<const Scratch> scratch = {}) const { return plan_arena(program, numbers, scratch); }
};

bool continues_into(const Tensors& tensors, TensorId to, size_t from) {
  while (to.valid() && to.index != from) to = tensors.program.tensors[to.index].continues;
  return to.valid();
}

void expect_sound(const Tensors& tensors, const ArenaPlan& plan) {
  const auto& slots = tensors.program.tensors;
  for (size_t a = 0; a < slots.size(); ++a) {
    if (slots[a].home != Home::Arena) continue;
    const auto [host, at, part] = plan.places[a];
    EXPECT_EQ(at % 64, 0);
    EXPECT_LE(at + tensors.numbers[a],
              host.valid() ? tensors.numbers[host.index] : plan.bytes[static_cast<size_t>(part)]);
    EXPECT_TRUE(part != Part::Before || slots[a].last_step < plan.turn) << a;
    EXPECT_TRUE(part != Part::After || slots[a].first_step >= plan.turn) << a;
    if (host.valid() && !continues_into(tensors, host, a)) {
      EXPECT_LT(slots[a].last_step, slots[host.index].first_step);
    }
    for (size_t b = 0; b < a; ++b) {
      if (slots[a].first_step > slots[b].last_step || slots[b].first_step > slots[a].last_step) continue;
      if (slots[b].home != Home::Arena || host != plan.places[b].host || part != plan.places[b].part) continue;
      const bool apart =
          at + tensors.numbers[a] <= plan.places[b].offset || plan.places[b].offset + tensors.numbers[b] <= at;
      EXPECT_TRUE(apart) << a << " and " << b << " are alive together and overlap";
    }
  }
}

constexpr int64_t kLarge = 4096;  // little waste is not worth a better plan

TEST(ArenaPlan, NeedsNoMoreThanWhatIsAliveTogether) {
  // A residual network's block: the small one at its start must not keep the large ones apart.
  Tensors t;
  t.add(64 * kLarge, 0, 1);
  t.add(256 * kLarge, 1, 6);
  t.add(1024 * kLarge, 2, 3);
  t.add(256 * kLarge, 3, 4);
  t.add(1024 * kLarge, 4, 5);
  t.add(256 * kLarge, 5, 6);
  const ArenaPlan plan = t.plan();
  expect_sound(t, plan);
  EXPECT_EQ(plan.alive, (256 + 1024 + 256) * kLarge);
  EXPECT_EQ(plan.arena(), plan.alive);
}

TEST(ArenaPlan, ScratchIsOneGapOfItsStep) {
  Tensors t;  // early ones decide how large the arena is; in step 4 the rest would lie in two pieces
  t.add(500 * kLarge, 0, 1);
  t.add(20 * kLarge, 0, 4);
  t.add(500 * kLarge, 1, 2);
  t.add(20 * kLarge, 3, 5);
  for (int i = 0; i < 6; ++i) t.program.steps.emplace_back(Copy{});
  const ArenaPlan before = t.plan();
  const std::vector<Scratch> scratch{{4, 900 * kLarge}};
  const ArenaPlan plan = t.plan(scratch);
  expect_sound(t, plan);
  EXPECT_EQ(plan.arena(), before.arena());
  int64_t widest = 0;
  for (const ArenaPlan::Gap& gap : plan.gaps(4)) widest = std::max(widest, gap.bytes);
  EXPECT_GE(widest, 900 * kLarge);
}

TEST(ArenaPlan, LargeOnesFirstWhereComingToLifeFragments) {
  Tensors t;
  t.add(128 * kLarge, 0, 2);
  t.add(64 * kLarge, 0, 9);  // in the middle when everything is placed as it comes
  t.add(128 * kLarge, 1, 3);
  t.add(256 * kLarge, 4, 9);
  const ArenaPlan plan = t.plan();
  expect_sound(t, plan);
  EXPECT_EQ(plan.arena(), plan.alive);
}

TEST(ArenaPlan, WhatContinuesATensorLiesWhereItLies) {
  Tensors t;
  const TensorId a = t.add(100, 0, 1);
  const TensorId b = t.add(100, 1, 2);
  const TensorId c = t.add(100, 2, 3);
  t.continues(b, a);
  t.continues(c, b);
  t.add(100, 3, 3);
  const TensorId made = t.add(100, 0, 1, Home::Extern);
  const TensorId kept = t.add(100, 1, 2);
  t.continues(kept, made);  // in memory that an operator allocated
  const ArenaPlan plan = t.plan();
  EXPECT_EQ(plan.places[a.index].offset, plan.places[b.index].offset);
  EXPECT_EQ(plan.places[a.index].offset, plan.places[c.index].offset);
  EXPECT_EQ(plan.arena(), 2 * 128);
}

TEST(ArenaPlan, OutputsLendTheirMemoryUntilTheyAreWritten) {
  Tensors t;
  const TensorId early = t.add(8192, 0, 1);
  const TensorId late = t.add(8192, 2, 3);
  const TensorId output = t.add(8192, 2, UINT32_MAX - 1, Home::Fresh);
  const TensorId chained = t.add(4096, 1, 2);  // becomes an output in place
  const TensorId tail = t.add(4096, 2, UINT32_MAX - 1, Home::Fresh);
  t.continues(tail, chained);
  const ArenaPlan plan = t.plan();
  expect_sound(t, plan);
  EXPECT_EQ(plan.places[early.index].host, output);
  EXPECT_FALSE(plan.places[late.index].host.valid());
  EXPECT_EQ(plan.places[chained.index].host, tail);
  EXPECT_EQ(plan.arena(), 8192);
}

// A kernel of the CPU would write into memory of the GPU.
TEST(ArenaPlan, OutputsLendTheirMemoryOnTheirDeviceAlone) {
  const graph::Device devices[] = {{DeviceKind::Cpu, 0}, {DeviceKind::Cuda, 0}, {DeviceKind::Cuda, 1}};
  for (const graph::Device& of_output : devices) {
    Tensors t;
    const TensorId early = t.add(8192, 0, 1);
    const TensorId output = t.add(8192, 2, UINT32_MAX - 1, Home::Fresh);
    t.program.tensors[early.index].device = devices[1];
    t.program.tensors[output.index].device = of_output;
    EXPECT_EQ(t.plan().places[early.index].host.valid(), of_output == devices[1]);
  }
}

TEST(ArenaPlan, SmallOutputsMadeAfterItsLastUseDoNotLend) {
  Tensors t;
  t.add(65536, 0, 1);
  const TensorId small = t.add(4096, 0, 1);
  t.add(8192, 1, UINT32_MAX - 1, Home::Fresh);                        // smaller than a quarter, but made with it
  const TensorId late = t.add(8192, 2, UINT32_MAX - 1, Home::Fresh);  // the arena is given back before
  for (int i = 0; i < 3; ++i) t.program.steps.emplace_back(Copy{});
  const ArenaPlan plan = t.plan();
  expect_sound(t, plan);
  EXPECT_NE(plan.places[small.index].host, late);
  EXPECT_EQ(plan.end, 2);
}

TEST(ArenaPlan, KnowsWhatIsFreeDuringAStep) {
  Tensors t;
  const TensorId a = t.add(8192, 0, 0);
  t.add(8192, 0, 2);
  t.add(4096, 1, 1);
  const TensorId output = t.add(8192, 3, UINT32_MAX - 1, Home::Fresh);
  const TensorId unused = t.add(4096, 1, UINT32_MAX - 1, Home::Fresh);
  for (int i = 0; i < 4; ++i) t.program.steps.emplace_back(Copy{});
  const ArenaPlan plan = t.plan();
  EXPECT_EQ(plan.places[a.index].host, output);
  const auto gaps_at = [&](uint32_t step) {
    int64_t arena = 0, in_output = 0;
    for (const ArenaPlan::Gap& gap : plan.gaps(step)) {
      EXPECT_NE(gap.place.host, unused) << "nothing lies in it: it is not allocated yet";
      (gap.place.host == output ? in_output : arena) += gap.bytes;
    }
    return std::pair(arena, in_output);
  };
  EXPECT_EQ(gaps_at(0), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(gaps_at(1), std::pair(int64_t{0}, int64_t{4096}));
  EXPECT_EQ(gaps_at(2), std::pair(int64_t{0}, int64_t{8192}));
  EXPECT_EQ(gaps_at(3), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_TRUE(plan.gaps(4).empty());
}

TEST(ArenaPlan, IsGivenBackBeforeWhatComesAfterItsLastUse) {
  Tensors t;
  t.add(8192, 0, 2);
  t.add(64, 1, UINT32_MAX - 1, Home::Fresh);
  EXPECT_EQ(t.plan().end, UINT32_MAX);
  t.add(64, 4, UINT32_MAX - 1, Home::Fresh);
  t.add(64, 5, UINT32_MAX - 1, Home::Fresh);
  for (int i = 0; i < 6; ++i) t.program.steps.emplace_back(Copy{});
  EXPECT_EQ(t.plan().end, 4U);
  t.add(8192, 0, 4);
  EXPECT_EQ(t.plan().end, 5U);
  t.add(8192, 3, 5);
  EXPECT_EQ(t.plan().end, UINT32_MAX);
}

TEST(ArenaPlan, WhatDiesBeforeOutputsIsGivenBackBeforeThem) {
  // As where a convolution's scratch is large and results are kept from then on, each too small to lend its memory.
  Tensors t;
  const TensorId large = t.add(1000 * kLarge, 0, 1);
  const TensorId over = t.add(100 * kLarge, 1, 2);
  const TensorId across = t.add(10 * kLarge, 1, 5);
  const TensorId late = t.add(150 * kLarge, 3, 9);
  for (int i = 0; i < 3; ++i) t.program.steps.emplace_back(Copy{});
  EXPECT_EQ(t.plan().turn, 0U);
  for (int i = 0; i < 4; ++i) {
    const TensorId first = t.add(40 * kLarge, 3, 4);
    t.continues(t.add(40 * kLarge, 4, UINT32_MAX - 1, Home::Fresh), first);
    t.program.steps.emplace_back(Copy{});
  }
  const ArenaPlan plan = t.plan();
  expect_sound(t, plan);
  EXPECT_EQ(plan.turn, 3U);
  EXPECT_EQ(plan.places[large.index].part, Part::Before);
  EXPECT_EQ(plan.places[over.index].part, Part::Before);
  EXPECT_EQ(plan.places[across.index].part, Part::Whole);
  EXPECT_EQ(plan.places[late.index].part, Part::After);
  EXPECT_EQ(plan.bytes[0], 10 * kLarge);
  EXPECT_EQ(plan.bytes[1], 1100 * kLarge);
  EXPECT_EQ(plan.bytes[2], 150 * kLarge);
  const auto gaps_at = [&](uint32_t step, Part part) {
    int64_t bytes = 0;
    for (const ArenaPlan::Gap& gap : plan.gaps(step)) bytes += gap.place.part == part ? gap.bytes : 0;
    return bytes;
  };
  EXPECT_EQ(gaps_at(2, Part::Before), 1000 * kLarge);
  EXPECT_EQ(gaps_at(2, Part::After), 0);
  EXPECT_EQ(gaps_at(3, Part::Before), 0);

  // Scratch that makes the first step the fullest: behind it is the better place to turn.
  const std::array<Scratch, 1> scratch{Scratch{0, 500 * kLarge}};
  const ArenaPlan with_scratch = t.plan(scratch);
  expect_sound(t, with_scratch);
  EXPECT_EQ(with_scratch.turn, 1U);
  EXPECT_EQ(with_scratch.most(), with_scratch.alive);
}

TEST(ArenaPlan, OutputsAloneNeedNoArena) {
  Tensors t;
  t.add(1000 * kLarge, 1, UINT32_MAX - 1, Home::Fresh);
  t.add(1000 * kLarge, 2, UINT32_MAX - 1, Home::Fresh);
  EXPECT_EQ(t.plan().most(), 0);
  EXPECT_EQ(t.plan().turn, 0U);
}

TEST(ArenaPlan, SmallOutputsDoNotLendTheirMemory) {
  Tensors t;
  const TensorId small = t.add(4096, 0, 1);
  t.add(1024 * 4096, 0, 1);
  t.add(4096, 2, UINT32_MAX - 1, Home::Fresh);
  EXPECT_FALSE(t.plan().places[small.index].host.valid());
}

TEST(ArenaPlan, RandomProgramsAreSoundAndTight) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  int splits = 0;
  for (int round = 0; round < 200; ++round) {
    Tensors t;
    const bool outputs_last = round % 4 == 3;
    if (outputs_last) t.add(kLarge * 10, 0, 100);
    for (uint32_t i = 0; i < 60; ++i) {
      const uint32_t first = below(40);
      t.add(below(4) == 0 ? kLarge * below(5000) : kLarge * 64 * (1 + below(8)), first,
            first + below(!outputs_last && below(8) == 0 ? 40 : 4));
      if (round % 2 == 0 || below(9) != 0) continue;
      t.add(outputs_last ? kLarge * 500 : 4096 + below(3000), first + (outputs_last ? 50 : 0), UINT32_MAX - 1,
            Home::Fresh);
    }
    const ArenaPlan plan = t.plan();
    expect_sound(t, plan);
    splits += plan.turn != 0 ? 1 : 0;
    EXPECT_LE(plan.most(), plan.alive + plan.alive / 4 + (1 << 16));
  }
  EXPECT_GT(splits, 0);
}

TEST(ArenaPlan, SaysWhatIsAliveAtThePeak) {
  Tensors t;
  t.add(64, 0, 1);
  const TensorId large = t.add(640, 2, 3);
  t.program.tensors[large.index].name = "%large";
  const std::string text = explain_peak(t.program, t.numbers, t.plan());
  EXPECT_NE(text.find("640 bytes, are alive at step 2"), std::string::npos) << text;
  EXPECT_NE(text.find("%large"), std::string::npos) << text;
}

}  // namespace
}  // namespace cresset::runtime

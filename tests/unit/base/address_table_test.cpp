#include "base/address_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace cresset {
namespace {

const void* address(uintptr_t n) { return reinterpret_cast<const void*>(n); }

TEST(AddressTable, SaysWhatIsNew) {
  AddressSet<const void*> set;
  EXPECT_FALSE(set.contains(address(16)));
  EXPECT_TRUE(set.insert(address(16)));
  EXPECT_FALSE(set.insert(address(16)));
  EXPECT_TRUE(set.contains(address(16)));
  EXPECT_FALSE(set.contains(address(32)));
  EXPECT_EQ(set.size(), 1u);
}

TEST(AddressTable, TellsPairsApartByTheirOrder) {
  AddressSet<AddressPair> set;
  EXPECT_TRUE(set.insert({address(16), address(32)}));
  EXPECT_TRUE(set.insert({address(32), address(16)}));
  EXPECT_TRUE(set.insert({address(16), nullptr}));
  EXPECT_FALSE(set.insert({address(16), nullptr}));
  EXPECT_FALSE(set.contains({nullptr, address(16)}));
}

// Against the standard library's, through several growths; addresses lie close together, as those of objects do.
TEST(AddressTable, HoldsWhatAMapHolds) {
  std::mt19937 random(7);
  AddressTable<const void*, std::unique_ptr<int>> table;
  std::unordered_map<const void*, int> expected;
  for (int i = 0; i < 20000; ++i) {
    const void* const key = address(0x7f0000000000 + 16 * (random() % 3000 + 1));
    const auto [value, fresh] = table.add(key);
    ASSERT_EQ(fresh, expected.count(key) == 0);
    if (fresh) *value = std::make_unique<int>(i), expected[key] = i;
  }
  ASSERT_EQ(table.size(), expected.size());
  for (const auto& [key, value] : expected) ASSERT_EQ(**table.find(key), value);
  size_t seen = 0;
  table.each([&](const void* key, const std::unique_ptr<int>& value) {
    EXPECT_EQ(expected.at(key), *value);
    ++seen;
  });
  EXPECT_EQ(seen, expected.size());
}

// Values are let go of, also where the table has become much larger than what it holds.
TEST(AddressTable, ForgetsEverything) {
  const auto token = std::make_shared<int>(1);
  AddressTable<const void*, std::shared_ptr<int>> table;
  for (const size_t count : {1000u, 3u, 1u}) {
    for (size_t i = 1; i <= count; ++i) table[address(16 * i)] = token;
    EXPECT_EQ(token.use_count(), static_cast<long>(count) + 1);
    table.clear();
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_TRUE(table.empty());
    EXPECT_EQ(table.find(address(16)), nullptr);
  }
}

}  // namespace
}  // namespace cresset

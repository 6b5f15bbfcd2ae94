#include <cstdio>
#include <map>
#include <string>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> all;
    unsigned x = 7, sum = 0;
    for (int i = 0; i < 500000; i++) { x = x * 1664525 + 1013904223; all["word " + std::to_string((x >> 8) % 90000)].push_back(i); }
    for (auto &[word, places] : all) sum = sum * 31 + places.size() + word.size();
    printf("%u\n", sum);
}

/** A table that lives until the end, and is read again and again. */
class Table {
    public static void main(String[] words) {
        int count = Integer.parseInt(words[0]);
        var m = new java.util.HashMap<Integer, Integer>();
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < count; i++) m.merge((int) (i * 7919L % (count + 1)), i, Integer::sum);
        System.out.println(m.size());
    }
}

class Table {
    public static void main(String[] words) {
        var m = new java.util.HashMap<Integer, Integer>();
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 700000; i++) m.merge((int) (i * 7919L % 700001), i, Integer::sum);
        System.out.println(m.size());
    }
}

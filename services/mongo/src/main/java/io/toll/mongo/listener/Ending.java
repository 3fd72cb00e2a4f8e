package io.toll.mongo.listener;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;

/** Ends a connection that cannot go on, and says why in one line: an outsider's handshake is nothing to trace. */
final class Ending extends ChannelInboundHandlerAdapter {
    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable why) {
        System.err.println("closing " + context.channel().remoteAddress() + ": " + why);
        context.close();
    }
}
